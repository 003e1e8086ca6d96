// Stand-ins for what the generated package uses of ros2_control and rclcpp (jazzy), by their documented interface. No
// middleware: a topic delivers at once, in the caller's thread; timers are called by the test.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace std_msgs::msg
{
struct Bool
{
  using SharedPtr = std::shared_ptr<Bool>;
  bool data = false;
};
struct Header
{
  double stamp = 0.0;
};
}  // namespace std_msgs::msg

namespace std_srvs::srv
{
struct Trigger
{
  struct Request {};
  struct Response
  {
    bool success = false;
    std::string message;
  };
};
}  // namespace std_srvs::srv

namespace trajectory_msgs::msg
{
struct JointTrajectoryPoint
{
  using SharedPtr = std::shared_ptr<JointTrajectoryPoint>;
  std::vector<double> positions, velocities, accelerations, effort;
};
}  // namespace trajectory_msgs::msg

namespace diagnostic_msgs::msg
{
struct KeyValue
{
  std::string key, value;
};
struct DiagnosticStatus
{
  static constexpr unsigned char OK = 0, ERROR = 2;
  unsigned char level = OK;
  std::string name, message, hardware_id;
  std::vector<KeyValue> values;
};
struct DiagnosticArray
{
  std_msgs::msg::Header header;
  std::vector<DiagnosticStatus> status;
};
}  // namespace diagnostic_msgs::msg

namespace rcl_interfaces::msg
{
struct SetParametersResult
{
  bool successful = false;
  std::string reason;
};
}  // namespace rcl_interfaces::msg

enum rcl_clock_type_t { RCL_ROS_TIME };

namespace rclcpp
{
class Duration
{
public:
  explicit Duration(double seconds) : seconds_(seconds) {}
  static Duration from_seconds(double seconds) {return Duration(seconds);}
  double seconds() const {return seconds_;}

private:
  double seconds_;
};

class Time
{
public:
  Time(std::int32_t seconds, std::uint32_t nanoseconds, rcl_clock_type_t = RCL_ROS_TIME)
  : seconds_(seconds + 1e-9 * nanoseconds) {}
  Time operator+(const Duration & step) const
  {
    Time sum(0, 0);
    sum.seconds_ = seconds_ + step.seconds();
    return sum;
  }

private:
  double seconds_;
};

class Parameter
{
public:
  using Value = std::variant<std::monostate, bool, double, std::string, std::vector<double>, std::vector<std::string>>;
  Parameter() = default;
  Parameter(const std::string & name, const Value & given) : name_(name), value(given) {}
  Parameter(const std::string & name, const char * given) : name_(name), value(std::string(given)) {}
  const std::string & get_name() const {return name_;}
  template <class T>
  T get_value() const {return std::get<T>(value);}
  double as_double() const {return std::get<double>(value);}
  std::string as_string() const {return std::get<std::string>(value);}
  std::vector<double> as_double_array() const {return std::get<std::vector<double>>(value);}

private:
  std::string name_;

public:
  Value value;
};

namespace node_interfaces
{
class NodeParametersInterface
{
public:
  using ConstSharedPtr = std::shared_ptr<const NodeParametersInterface>;
  std::map<std::string, Parameter> all;
  bool has_parameter(const std::string & name) const {return all.count(name) > 0;}
  bool get_parameter(const std::string & name, Parameter & found) const
  {
    found = all.at(name);
    return true;
  }
};
struct OnSetParametersCallbackHandle
{
  using SharedPtr = std::shared_ptr<OnSetParametersCallbackHandle>;
};
}  // namespace node_interfaces

namespace exceptions
{
struct InvalidParameterValueException : std::runtime_error
{
  using std::runtime_error::runtime_error;
};
}  // namespace exceptions

class NodeOptions
{
public:
  NodeOptions & parameter_overrides(const std::vector<Parameter> & given)
  {
    parameters = given;
    return *this;
  }
  std::vector<Parameter> parameters;
};

class QoS
{
public:
  explicit QoS(std::size_t) {}
  QoS & best_effort() {return *this;}
  QoS & reliable() {return *this;}
};

struct Logger {};

template <class Message>
struct Publisher
{
  using SharedPtr = std::shared_ptr<Publisher>;
  Message last;
  void publish(const Message & message) {last = message;}
};

template <class Message>
struct Subscription
{
  using SharedPtr = std::shared_ptr<Subscription>;
  std::function<void(std::shared_ptr<Message>)> callback;
};

template <class Type>
struct Service
{
  using SharedPtr = std::shared_ptr<Service>;
  std::function<void(std::shared_ptr<typename Type::Request>, std::shared_ptr<typename Type::Response>)> callback;
};

struct TimerBase
{
  using SharedPtr = std::shared_ptr<TimerBase>;
  std::function<void()> callback;
};

inline void init(int, char **) {}
inline void shutdown() {}
}  // namespace rclcpp

inline std::vector<std::string> & logged()
{
  static std::vector<std::string> lines;
  return lines;
}

inline void log_line(const rclcpp::Logger &, const char * format, ...)
{
  char line[500];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  logged().push_back(line);
}
#define RCLCPP_ERROR(...) log_line(__VA_ARGS__)
#define RCLCPP_WARN(...) log_line(__VA_ARGS__)

namespace lifecycle_msgs::msg
{
struct State
{
  static constexpr std::uint8_t PRIMARY_STATE_UNCONFIGURED = 1, PRIMARY_STATE_INACTIVE = 2, PRIMARY_STATE_ACTIVE = 3;
};
}  // namespace lifecycle_msgs::msg

namespace rclcpp_lifecycle
{
class State
{
public:
  std::uint8_t number = lifecycle_msgs::msg::State::PRIMARY_STATE_UNCONFIGURED;
  std::uint8_t id() const {return number;}
};

// Holds its topics by name, so that a test reaches them.
class LifecycleNode
{
public:
  std::string name;
  std::map<std::string, rclcpp::Parameter> parameters;
  bool changed = false;    // whether parameters were set since they were read
  std::function<const State & ()> on_activate, on_deactivate;
  std::map<std::string, std::vector<std::shared_ptr<void>>> topics;
  std::vector<rclcpp::TimerBase::SharedPtr> timers;

  const char * get_name() const {return name.c_str();}
  rclcpp::Logger get_logger() const {return {};}
  double now() const {return 0.0;}
  const State & activate() {return on_activate();}
  const State & deactivate() {return on_deactivate();}

  template <class Message, class Callback>
  typename rclcpp::Subscription<Message>::SharedPtr create_subscription(
    const std::string & topic, const rclcpp::QoS &, Callback && callback)
  {
    auto made = std::make_shared<rclcpp::Subscription<Message>>();
    made->callback = callback;
    topics[topic].push_back(made);
    return made;
  }

  template <class Message>
  typename rclcpp::Publisher<Message>::SharedPtr create_publisher(const std::string & topic, const rclcpp::QoS &)
  {
    auto made = std::make_shared<rclcpp::Publisher<Message>>();
    topics[topic].push_back(made);
    return made;
  }

  template <class Type, class Callback>
  typename rclcpp::Service<Type>::SharedPtr create_service(const std::string & topic, Callback && callback)
  {
    auto made = std::make_shared<rclcpp::Service<Type>>();
    made->callback = callback;
    topics[topic].push_back(made);
    return made;
  }

  template <class Period, class Callback>
  rclcpp::TimerBase::SharedPtr create_wall_timer(Period, Callback && callback)
  {
    timers.push_back(std::make_shared<rclcpp::TimerBase>());
    timers.back()->callback = callback;
    return timers.back();
  }

  template <class Callback>
  rclcpp::node_interfaces::OnSetParametersCallbackHandle::SharedPtr add_on_set_parameters_callback(Callback && callback)
  {
    on_parameters = callback;
    return std::make_shared<rclcpp::node_interfaces::OnSetParametersCallbackHandle>();
  }
  std::function<rcl_interfaces::msg::SetParametersResult(const std::vector<rclcpp::Parameter> &)> on_parameters;

  // As ros2 param set: the reason, if it is refused.
  std::string set_parameter(const rclcpp::Parameter & parameter)
  {
    const auto result = on_parameters({parameter});
    if (result.successful) {
      parameters[parameter.get_name()] = parameter;
      changed = true;
    }
    return result.reason;
  }

  template <class Message>
  void send(const std::string & topic, const Message & message)
  {
    for (auto & each : topics.at(topic)) {
      static_cast<rclcpp::Subscription<Message> *>(each.get())->callback(std::make_shared<Message>(message));
    }
  }
};

namespace node_interfaces
{
class LifecycleNodeInterface
{
public:
  enum class CallbackReturn { SUCCESS, FAILURE, ERROR };
  virtual ~LifecycleNodeInterface() = default;
  virtual CallbackReturn on_configure(const State &) {return CallbackReturn::SUCCESS;}
  virtual CallbackReturn on_activate(const State &) {return CallbackReturn::SUCCESS;}
  virtual CallbackReturn on_deactivate(const State &) {return CallbackReturn::SUCCESS;}
  virtual CallbackReturn on_cleanup(const State &) {return CallbackReturn::SUCCESS;}
};
}  // namespace node_interfaces
}  // namespace rclcpp_lifecycle

namespace hardware_interface
{
class Handle
{
public:
  Handle(const std::string & prefix, const std::string & interface) : prefix_(prefix), interface_(interface) {}
  std::string get_name() const {return prefix_ + "/" + interface_;}
  bool busy = false;    // as if another thread held it
  template <class T>
  [[nodiscard]] bool set_value(const T & value)
  {
    value_ = busy ? value_ : value;
    return !busy;
  }
  template <class T = double>
  [[nodiscard]] std::optional<T> get_optional() const
  {
    return busy ? std::nullopt : std::optional<T>(value_);
  }

private:
  std::string prefix_, interface_;
  double value_ = std::numeric_limits<double>::quiet_NaN();
};

class StateInterface : public Handle
{
public:
  using Handle::Handle;
  using SharedPtr = std::shared_ptr<StateInterface>;
  using ConstSharedPtr = std::shared_ptr<const StateInterface>;
};

class CommandInterface : public Handle
{
public:
  using Handle::Handle;
  CommandInterface(const CommandInterface &) = delete;
  using SharedPtr = std::shared_ptr<CommandInterface>;
};

class LoanedStateInterface
{
public:
  using Deleter = std::function<void (void)>;
  LoanedStateInterface(StateInterface::ConstSharedPtr of, Deleter &&) : of_(of) {}
  template <class T = double>
  [[nodiscard]] std::optional<T> get_optional(unsigned = 10) const {return of_->get_optional<T>();}

private:
  StateInterface::ConstSharedPtr of_;
};

class LoanedCommandInterface
{
public:
  using Deleter = std::function<void (void)>;
  LoanedCommandInterface(CommandInterface::SharedPtr of, Deleter &&) : of_(of) {}
  template <class T>
  [[nodiscard]] bool set_value(const T & value, unsigned = 10) {return of_->set_value(value);}
  template <class T = double>
  [[nodiscard]] std::optional<T> get_optional(unsigned = 10) const {return of_->get_optional<T>();}

private:
  CommandInterface::SharedPtr of_;
};
}  // namespace hardware_interface

namespace controller_interface
{
using CallbackReturn = rclcpp_lifecycle::node_interfaces::LifecycleNodeInterface::CallbackReturn;
enum class return_type : std::uint8_t { OK = 0, ERROR = 1 };
enum class interface_configuration_type : std::uint8_t { ALL = 0, INDIVIDUAL = 1, NONE = 2 };

struct InterfaceConfiguration
{
  interface_configuration_type type = interface_configuration_type::NONE;
  std::vector<std::string> names = {};
};

struct ControllerInterfaceParams
{
  std::string controller_name;
  unsigned int update_rate = 0, controller_manager_update_rate = 0;
  rclcpp::NodeOptions node_options;
};

class ChainableControllerInterface : public rclcpp_lifecycle::node_interfaces::LifecycleNodeInterface
{
public:
  using Lifecycle = lifecycle_msgs::msg::State;

  return_type init(const ControllerInterfaceParams & params)
  {
    node_->name = params.controller_name;
    rate_ = params.update_rate;
    for (const auto & each : params.node_options.parameters) {
      node_->parameters[each.get_name()] = each;
    }
    node_->on_activate = [this]() -> const rclcpp_lifecycle::State & {
        state_.number = on_activate(state_) == CallbackReturn::SUCCESS ? Lifecycle::PRIMARY_STATE_ACTIVE : state_.number;
        return state_;
      };
    node_->on_deactivate = [this]() -> const rclcpp_lifecycle::State & {
        state_.number = on_deactivate(state_) == CallbackReturn::SUCCESS ? Lifecycle::PRIMARY_STATE_INACTIVE :
          state_.number;
        return state_;
      };
    return on_init() == CallbackReturn::SUCCESS ? return_type::OK : return_type::ERROR;
  }
  const rclcpp_lifecycle::State & configure()
  {
    state_.number = on_configure(state_) == CallbackReturn::SUCCESS ? Lifecycle::PRIMARY_STATE_INACTIVE :
      Lifecycle::PRIMARY_STATE_UNCONFIGURED;
    return state_;
  }
  unsigned int get_update_rate() const {return rate_;}
  rclcpp::NodeOptions define_custom_node_options() const {return {};}
  std::shared_ptr<rclcpp_lifecycle::LifecycleNode> get_node() {return node_;}
  std::shared_ptr<const rclcpp_lifecycle::LifecycleNode> get_node() const {return node_;}

  virtual CallbackReturn on_init() = 0;
  virtual InterfaceConfiguration command_interface_configuration() const = 0;
  virtual InterfaceConfiguration state_interface_configuration() const = 0;

  std::vector<hardware_interface::CommandInterface::SharedPtr> export_reference_interfaces()
  {
    ordered_exported_reference_interfaces_ = on_export_reference_interfaces_list();
    return ordered_exported_reference_interfaces_;
  }
  bool set_chained_mode(bool chained)
  {
    chained_ = on_set_chained_mode(chained) ? chained : chained_;
    return chained_ == chained;
  }
  bool is_in_chained_mode() const {return chained_;}
  void assign_interfaces(
    std::vector<hardware_interface::LoanedCommandInterface> && commands,
    std::vector<hardware_interface::LoanedStateInterface> && states)
  {
    command_interfaces_ = std::move(commands);
    state_interfaces_ = std::move(states);
  }
  void release_interfaces()
  {
    command_interfaces_.clear();
    state_interfaces_.clear();
  }
  return_type update(const rclcpp::Time & time, const rclcpp::Duration & period)
  {
    if (!chained_ && update_reference_from_subscribers(time, period) != return_type::OK) {
      return return_type::ERROR;
    }
    return update_and_write_commands(time, period);
  }

protected:
  virtual std::vector<hardware_interface::CommandInterface::SharedPtr> on_export_reference_interfaces_list() {return {};}
  virtual bool on_set_chained_mode(bool) {return true;}
  virtual return_type update_reference_from_subscribers(const rclcpp::Time &, const rclcpp::Duration &) = 0;
  virtual return_type update_and_write_commands(const rclcpp::Time &, const rclcpp::Duration &) = 0;

  std::vector<hardware_interface::CommandInterface::SharedPtr> ordered_exported_reference_interfaces_;
  std::vector<hardware_interface::LoanedCommandInterface> command_interfaces_;
  std::vector<hardware_interface::LoanedStateInterface> state_interfaces_;

private:
  std::shared_ptr<rclcpp_lifecycle::LifecycleNode> node_ = std::make_shared<rclcpp_lifecycle::LifecycleNode>();
  rclcpp_lifecycle::State state_;
  bool chained_ = false;
  unsigned int rate_ = 0;
};
}  // namespace controller_interface

namespace realtime_tools
{
template <class T>
class RealtimeBuffer    // two copies that are swapped: as the one of realtime_tools
{
public:
  T * readFromRT()
  {
    std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (lock.owns_lock() && news_) {
      std::swap(read_, written_);
      news_ = false;
    }
    return read_.get();
  }
  void writeFromNonRT(const T & value)
  {
    std::lock_guard<std::mutex> lock(mutex_);
    *written_ = value;
    news_ = true;
  }
  void initRT(const T & value) {*read_ = *written_ = value;}

private:
  std::unique_ptr<T> read_ = std::make_unique<T>(), written_ = std::make_unique<T>();
  bool news_ = false;
  std::mutex mutex_;
};
}  // namespace realtime_tools

#define PLUGINLIB_EXPORT_CLASS(derived, base) \
  static_assert(std::is_base_of_v<base, derived> && !std::is_abstract_v<derived>, "no plugin");
