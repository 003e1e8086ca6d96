// A ros2_control controller with effort interface: reads the joints, asks TorqueLaw, writes the efforts.
#include <algorithm>
#include <string>
#include <vector>

#include "controller_interface/controller_interface.hpp"
#include "pluginlib/class_list_macros.hpp"
#include "rclcpp/rclcpp.hpp"
#include "realtime_tools/realtime_buffer.hpp"
#include "torque_law.hpp"
#include "trajectory_msgs/msg/joint_trajectory_point.hpp"

namespace feedforward_effort_controller
{

using controller_interface::CallbackReturn;
using controller_interface::InterfaceConfiguration;
using controller_interface::interface_configuration_type;
using controller_interface::return_type;
using trajectory_msgs::msg::JointTrajectoryPoint;

class Controller : public controller_interface::ControllerInterface
{
public:
  CallbackReturn on_init() override
  {
    auto_declare<std::vector<double>>("stiffness", std::vector<double>(kJoints, 0.0));
    auto_declare<std::vector<double>>("damping", std::vector<double>(kJoints, 0.0));
    auto_declare<double>("ramp", 0.5);
    auto_declare<double>("reference_timeout", 0.1);
    return CallbackReturn::SUCCESS;
  }

  InterfaceConfiguration command_interface_configuration() const override {return interfaces({"effort"});}

  InterfaceConfiguration state_interface_configuration() const override
  {
    return interfaces({"position", "velocity"});
  }

  CallbackReturn on_configure(const rclcpp_lifecycle::State &) override
  {
    if (!read("stiffness", law_.stiffness) || !read("damping", law_.damping)) {
      return CallbackReturn::ERROR;
    }
    law_.ramp = get_node()->get_parameter("ramp").as_double();
    timeout_ = get_node()->get_parameter("reference_timeout").as_double();
    subscription_ = get_node()->create_subscription<JointTrajectoryPoint>(
      "~/reference", rclcpp::SystemDefaultsQoS(), [this](const JointTrajectoryPoint & message) {take(message);});
    return CallbackReturn::SUCCESS;
  }

  CallbackReturn on_activate(const rclcpp_lifecycle::State &) override
  {
    law_.reset();
    age_ = Age{};
    references_.writeFromNonRT(Received{});
    return CallbackReturn::SUCCESS;
  }

  return_type update(const rclcpp::Time &, const rclcpp::Duration & period) override
  {
    const Received & received = *references_.readFromRT();
    const bool fresh = age_.within(timeout_, received.number, period.seconds());
    Vector q, v, effort;
    for (std::size_t i = 0; i < kJoints; ++i) {    // in the order asked for: position and velocity of each joint
      const auto position = state_interfaces_[2 * i].get_optional();
      const auto velocity = state_interfaces_[2 * i + 1].get_optional();
      if (!position || !velocity) {
        return return_type::OK;    // another thread has it just now: the last effort stays for this cycle
      }
      q[i] = *position;
      v[i] = *velocity;
    }
    if (law_.awaits(q, v)) {
      return return_type::OK;    // no torque before the first state: the last command stays
    }
    if (!law_.update(q, v, fresh ? &received.reference : nullptr, period.seconds(), effort)) {
      return return_type::ERROR;    // the manager deactivates this controller and starts its fallback_controllers
    }
    bool written = true;
    for (std::size_t i = 0; i < kJoints; ++i) {
      written = command_interfaces_[i].set_value(effort[i]) && written;
    }
    return written ? return_type::OK : return_type::ERROR;
  }

private:
  struct Received
  {
    Reference reference{};
    std::uint64_t number = 0;    // of this reference; 0: none
  };

  InterfaceConfiguration interfaces(const std::vector<std::string> & kinds) const
  {
    InterfaceConfiguration found{interface_configuration_type::INDIVIDUAL, {}};
    for (std::size_t i = 0; i < kJoints; ++i) {
      for (const auto & kind : kinds) {
        found.names.push_back(std::string(arm_joint_names[i]) + "/" + kind);
      }
    }
    return found;
  }

  bool read(const std::string & name, Vector & values)
  {
    const auto given = get_node()->get_parameter(name).as_double_array();
    const bool good = given.size() == kJoints &&
      std::all_of(given.begin(), given.end(), [](double x) {return std::isfinite(x) && x >= 0.0;});
    if (!good) {
      RCLCPP_ERROR(
        get_node()->get_logger(), "parameter '%s' needs %zu numbers, none negative", name.c_str(), kJoints);
      return false;
    }
    std::copy(given.begin(), given.end(), values.begin());
    return true;
  }

  void take(const JointTrajectoryPoint & message)
  {
    Received received;
    Reference & reference = received.reference;
    const std::vector<double> * given[] = {&message.positions, &message.velocities, &message.accelerations};
    Vector * places[] = {&reference.position, &reference.velocity, &reference.acceleration};
    for (std::size_t part = 0; part < 3; ++part) {
      if (given[part]->size() != kJoints) {
        RCLCPP_WARN_THROTTLE(
          get_node()->get_logger(), *get_node()->get_clock(), 1000,
          "reference dropped: positions, velocities and accelerations need %zu numbers each", kJoints);
        return;
      }
      std::copy(given[part]->begin(), given[part]->end(), places[part]->begin());
    }
    if (!finite(reference)) {
      RCLCPP_WARN_THROTTLE(
        get_node()->get_logger(), *get_node()->get_clock(), 1000, "reference dropped: not finite");
      return;
    }
    received.number = ++taken_;
    references_.writeFromNonRT(received);
  }

  TorqueLaw law_;
  Age age_;
  std::uint64_t taken_ = 0;    // references
  double timeout_ = 0.1;
  realtime_tools::RealtimeBuffer<Received> references_;
  rclcpp::Subscription<JointTrajectoryPoint>::SharedPtr subscription_;
};

}  // namespace feedforward_effort_controller

PLUGINLIB_EXPORT_CLASS(feedforward_effort_controller::Controller, controller_interface::ControllerInterface)
