// The plugin with stand-ins: what happens at its interfaces and topics. PACKAGE: its namespace.
#include <cmath>
#include <string>
#include <vector>

#include "effort_controller.hpp"
#include "gtest.hpp"
#include "plant.hpp"

using namespace PACKAGE;
using controller_interface::return_type;
using Lifecycle = lifecycle_msgs::msg::State;
using Point = trajectory_msgs::msg::JointTrajectoryPoint;

namespace
{
constexpr double DT = 0.002;

class Plugin : public ::testing::Test
{
protected:
  EffortController controller;
  Plant plant{1.02};
  std::vector<hardware_interface::StateInterface::SharedPtr> states;
  std::vector<hardware_interface::CommandInterface::SharedPtr> commands, references;
  std::vector<rclcpp::Parameter> given = {{"feedforward", "computed_torque"},
    {"gains.kp", std::vector<double>{400.0}}, {"gains.kd", std::vector<double>{40.0}}};
  rclcpp::Time time{0, 0};

  void begin(bool chained, const std::vector<rclcpp::Parameter> & more = {})
  {
    controller_interface::ControllerInterfaceParams params;
    params.controller_name = "torque";
    params.update_rate = 500;
    params.node_options.parameter_overrides(given);
    for (const auto & each : more) {
      params.node_options.parameters.push_back(each);
    }
    ASSERT_TRUE(controller.init(params) == return_type::OK);
    ASSERT_TRUE(controller.configure().id() == Lifecycle::PRIMARY_STATE_INACTIVE);
    references = controller.export_reference_interfaces();
    std::vector<hardware_interface::LoanedStateInterface> loaned_states;
    for (const auto & name : controller.state_interface_configuration().names) {
      states.push_back(std::make_shared<hardware_interface::StateInterface>(name, ""));
      loaned_states.emplace_back(states.back(), nullptr);
    }
    std::vector<hardware_interface::LoanedCommandInterface> loaned_commands;
    for (const auto & name : controller.command_interface_configuration().names) {
      commands.push_back(std::make_shared<hardware_interface::CommandInterface>(name, ""));
      loaned_commands.emplace_back(commands.back(), nullptr);
    }
    controller.assign_interfaces(std::move(loaned_commands), std::move(loaned_states));
    ASSERT_TRUE(controller.set_chained_mode(chained));
    read();
    ASSERT_TRUE(controller.get_node()->activate().id() == Lifecycle::PRIMARY_STATE_ACTIVE);
  }

  void read()
  {
    for (std::size_t i = 0; i < states.size(); ++i) {
      (void)!states[i]->set_value(i < N ? plant.q[i] : plant.v[i - N]);
    }
  }

  Vector written() const
  {
    Vector tau{};
    for (std::size_t i = 0; i < N; ++i) {
      tau[i] = commands[i]->get_optional().value_or(NAN);
    }
    return tau;
  }

  void cycles(int count)
  {
    for (int k = 0; k < count; ++k) {
      const auto period = rclcpp::Duration::from_seconds(DT);
      time = time + period;
      ASSERT_TRUE(controller.update(time, period) == return_type::OK);
      plant.step(written(), DT);
      read();
    }
  }

  Point here(double offset = 0.0) const
  {
    Point point;
    for (double each : plant.q) {
      point.positions.push_back(each + offset);
    }
    return point;
  }

  void send(const Point & point) {controller.get_node()->send("~/reference", point);}

  // Lets the timer run and returns a value of /diagnostics.
  std::string said(const std::string & key)
  {
    controller.get_node()->timers.back()->callback();
    const auto & publisher = *static_cast<rclcpp::Publisher<diagnostic_msgs::msg::DiagnosticArray> *>(
      controller.get_node()->topics.at("/diagnostics").back().get());
    for (const auto & each : publisher.last.status[0].values) {
      if (each.key == key) {
        return each.value;
      }
    }
    return "?";
  }
};

TEST_F(Plugin, NamesOfItsInterfaces)
{
  begin(true);
  EXPECT_TRUE(states[0]->get_name() == std::string(JOINTS[0]) + "/position/");
  EXPECT_TRUE(states[N]->get_name() == std::string(JOINTS[0]) + "/velocity/");
  EXPECT_TRUE(commands[N - 1]->get_name() == std::string(JOINTS[N - 1]) + "/effort/");
  EXPECT_TRUE(references[0]->get_name() == std::string("torque/") + JOINTS[0] + "/position");
  EXPECT_TRUE(references[5]->get_name() == std::string("torque/") + JOINTS[1] + "/acceleration");
}

TEST_F(Plugin, ATopicIsFollowedAndItsEndIsRest)
{
  begin(false);
  cycles(10);
  EXPECT_TRUE(said("mode") == "waiting");
  for (int k = 0; k < 600; ++k) {
    Point point = here();
    point.positions.assign(N, 0.05);
    send(point);
    cycles(1);
  }
  EXPECT_TRUE(said("mode") == "running");
  EXPECT_NEAR(plant.q[0], 0.05, 0.02);
  send(Point());    // stop here
  cycles(300);
  EXPECT_TRUE(said("mode") == "running");
  EXPECT_LT(plant.speed(), 0.02);
}

TEST_F(Plugin, PointsThatDoNotFitAreRefused)
{
  begin(false);
  cycles(10);
  Point wrong = here();
  wrong.positions.push_back(0.0);
  send(wrong);
  wrong = here();
  wrong.velocities = {1.0};
  send(wrong);
  wrong = Point();
  wrong.velocities.assign(N, 0.0);
  send(wrong);
  cycles(10);
  wrong = here();
  wrong.effort.assign(N, 1.0);
  send(wrong);
  wrong = here();
  wrong.positions[0] = NAN;
  send(wrong);
  cycles(1);
  EXPECT_TRUE(said("rejected_points") == "4");
  EXPECT_TRUE(said("rejected_references") == "1");
  EXPECT_TRUE(said("mode") == "waiting");
}

TEST_F(Plugin, AnEmergencyStopIsLatchedUntilReset)
{
  begin(false);
  auto node = controller.get_node();
  std_msgs::msg::Bool stop;
  node->send("~/emergency_stop", stop);    // false
  cycles(10);
  EXPECT_TRUE(said("mode") == "waiting");
  stop.data = true;
  node->send("~/emergency_stop", stop);
  stop.data = false;
  node->send("~/emergency_stop", stop);
  cycles(1);
  EXPECT_TRUE(said("mode") == "stopped");
  node->deactivate();
  node->activate();
  for (int k = 0; k < 100; ++k) {
    send(here());
    cycles(1);
  }
  cycles(300);    // what came more than state_timeout + hold before the reset counts no more
  EXPECT_TRUE(said("mode") == "stopped");
  EXPECT_LT(plant.speed(), 0.05);
  auto & service = *static_cast<rclcpp::Service<std_srvs::srv::Trigger> *>(node->topics.at("~/reset").back().get());
  auto response = std::make_shared<std_srvs::srv::Trigger::Response>();
  service.callback(nullptr, response);
  EXPECT_TRUE(response->success);
  cycles(1);
  EXPECT_TRUE(said("mode") == "waiting");
}

TEST_F(Plugin, AStopAndItsResetWhileInactiveLeaveNothing)
{
  begin(false);
  auto node = controller.get_node();
  node->deactivate();
  std_msgs::msg::Bool stop;
  stop.data = true;
  node->send("~/emergency_stop", stop);
  static_cast<rclcpp::Service<std_srvs::srv::Trigger> *>(node->topics.at("~/reset").back().get())->callback(
    nullptr, std::make_shared<std_srvs::srv::Trigger::Response>());
  node->activate();
  cycles(1);
  EXPECT_TRUE(said("mode") == "waiting");
}

TEST_F(Plugin, ReferenceInterfacesAreReadOnceEach)
{
  begin(true);
  cycles(10);
  for (int k = 0; k < 400; ++k) {
    for (std::size_t i = 0; i < N; ++i) {
      (void)!references[3 * i]->set_value(0.03);    // positions alone: velocities and accelerations are 0
    }
    cycles(1);
    EXPECT_TRUE(std::isnan(references[0]->get_optional().value_or(0.0)));
  }
  EXPECT_TRUE(said("mode") == "running");
  (void)!references[0]->set_value(INFINITY);    // and the others NaN
  cycles(1);
  EXPECT_TRUE(said("rejected_references") == "1");
  cycles(300);    // nothing comes: rest at the last position
  EXPECT_TRUE(said("mode") == "running");
  EXPECT_NEAR(plant.q[1], 0.03, 0.02);
  EXPECT_LT(plant.speed(), 0.02);
}

TEST_F(Plugin, InterfacesThatAreBusyAreTriedAgainInTheNextCycle)
{
  begin(true);
  cycles(50);
  const Vector before = written();
  for (auto & each : commands) {
    each->busy = true;
  }
  const auto period = rclcpp::Duration::from_seconds(DT);
  EXPECT_TRUE(controller.update(time + period, period) == return_type::OK);
  for (auto & each : commands) {
    each->busy = false;
  }
  EXPECT_TRUE(written() == before);
  EXPECT_TRUE(said("unwritten") == std::to_string(N));
  states[0]->busy = true;
  cycles(1);
  states[0]->busy = false;
  EXPECT_TRUE(said("rejected_non_finite") == "1");
  cycles(10);
  EXPECT_TRUE(said("mode") == "waiting");
}

TEST_F(Plugin, NothingIsWrittenBeforeTheFirstState)
{
  begin(false);
  (void)!states[0]->set_value(NAN);
  const auto period = rclcpp::Duration::from_seconds(DT);
  EXPECT_TRUE(controller.update(time, period) == return_type::OK);
  EXPECT_TRUE(std::isnan(written()[0]));
  controller.get_node()->deactivate();
  EXPECT_TRUE(std::isnan(written()[0]));
}

TEST_F(Plugin, WithoutAnyStateTheManagerIsTold)
{
  begin(false);
  const auto period = rclcpp::Duration::from_seconds(DT);
  int updates = 0;
  for (; updates < 1000; ++updates) {
    (void)!states[0]->set_value(NAN);
    if (controller.update(time, period) == return_type::ERROR) {
      break;
    }
  }
  EXPECT_NEAR(updates * DT, 0.55, 0.01);    // state_timeout + safe_output.hold
  EXPECT_TRUE(std::isnan(written()[0]));
}

TEST_F(Plugin, AnArmThatIsAlreadyTooFastIsCaught)
{
  for (double & each : plant.v) {
    each = 0.0;
  }
  plant.v[0] = 2.5 * VELOCITY_LIMIT[0];
  begin(false);
  for (int k = 0; k < 10; ++k) {    // five states that agree with each other
    plant.q[0] += DT * plant.v[0];
    read();
    EXPECT_TRUE(controller.update(time, rclcpp::Duration::from_seconds(DT)) == return_type::OK);
  }
  EXPECT_TRUE(written()[0] < 0.0);
  cycles(1000);
  EXPECT_LT(plant.speed(), 0.1);
}

TEST_F(Plugin, HardwareWithoutVelocities)
{
  begin(false, {{"state_interfaces", std::vector<std::string>{"position"}}});
  EXPECT_TRUE(states.size() == N);
  cycles(300);
  EXPECT_TRUE(said("mode") == "waiting");
  EXPECT_LT(plant.speed(), 0.1);
}

TEST_F(Plugin, TorqueScaleAndOrderOfLists)
{
  std::vector<std::string> reversed(JOINTS.rbegin(), JOINTS.rend());
  std::vector<double> scale(N, 1.0), kp(N, 0.0), kd(N, 0.0);
  scale[N - 1] = 2.0;    // in the order of the description
  kp[0] = 10.0;          // in the order of `joints`: of the last joint
  begin(false, {{"joints", reversed}, {"dynamics.torque_scale", scale}, {"gains.kp", kp}, {"gains.kd", kd},
      {"feedforward", "gravity"}, {"ramp_in", 0.0}});
  const auto period = rclcpp::Duration::from_seconds(DT);
  for (std::size_t i = 0; i < N; ++i) {
    plant.q[i] = 0.1 * static_cast<double>(i + 1);
  }
  read();
  Point point;
  for (std::size_t i = N; i-- > 0; ) {
    point.positions.push_back(plant.q[i] + 0.01);
  }
  send(point);
  EXPECT_TRUE(controller.update(time, period) == return_type::OK);
  Vector gravity{};
  Arm().gravity_effort(plant.q, gravity);
  for (std::size_t i = 0; i < N; ++i) {
    EXPECT_NEAR(written()[i], i == N - 1 ? (gravity[i] + 10.0 * 0.01) / 2.0 : gravity[i], 1e-12);
  }
}

TEST_F(Plugin, ParametersThatDoNotFitAreRefusedWithTheReason)
{
  begin(false);
  auto & node = *controller.get_node();
  const auto refused = [&node](const char * name, const rclcpp::Parameter::Value & value, const char * reason) {
      const std::string said = node.set_parameter({name, value});
      return said.find(reason) != std::string::npos;
    };
  EXPECT_TRUE(refused("gains.kp", std::vector<double>{1.0, 2.0}, "'gains.kp' has 2 numbers, expected 1 or"));
  EXPECT_TRUE(refused("effort_limits.maximum", std::vector<double>{NAN}, "'effort_limits.maximum' has a number that is not"));
  EXPECT_TRUE(refused("gains.kd", std::vector<double>{INFINITY}, "'gains.kd' has a number that is not finite"));
  EXPECT_TRUE(refused("safe_output.fallback", std::vector<double>{INFINITY}, "'safe_output.fallback'"));
  EXPECT_TRUE(refused("rotor_inertia", std::vector<double>{INFINITY}, "'rotor_inertia'"));
  EXPECT_TRUE(refused("gravity", std::vector<double>{0.0, 0.0, 1e200}, "'gravity'"));
  EXPECT_TRUE(refused("ramp_in", NAN, "'ramp_in' is not finite"));
  EXPECT_TRUE(refused("safe_output.damping", NAN, "'safe_output.damping' is not finite"));
  EXPECT_TRUE(refused("dynamics.inertias", std::vector<double>{1.0}, "'dynamics.inertias' has 1 numbers"));
  EXPECT_TRUE(node.set_parameter({"payload.mass", 0.0}) == "");
  EXPECT_TRUE(refused("payload.mass", 1.0, "'payload.body': '' is no link"));
  EXPECT_TRUE(node.set_parameter({"payload.body", LINKS.back().name}) == "");
  EXPECT_TRUE(node.set_parameter({"payload.mass", 1.0}) == "");
  EXPECT_TRUE(node.set_parameter({"dynamics.joints", std::vector<std::string>(JOINTS.begin(), JOINTS.end())}) == "");
  EXPECT_TRUE(refused("dynamics.joints", std::vector<std::string>(JOINTS.rbegin(), JOINTS.rend()), "of another arm"));
  std::vector<double> impossible(INERTIAS.begin(), INERTIAS.end());
  impossible[10 * N - 10] = -50.0;
  EXPECT_TRUE(refused("dynamics.inertias", impossible, "a negative mass"));
  impossible[10 * N - 10] = 1.0;
  impossible[10 * N - 1] = -100.0;    // about its axis
  EXPECT_TRUE(refused("dynamics.inertias", impossible, "not positive definite"));
  for (const std::vector<double> & none : std::vector<std::vector<double>>{{-9.0, -9.0, -9.0, 0.0, 0.0, 0.0},
        {0.1, 0.1, 1.0, 0.0, 0.0, 0.0}, {1.0, 1.0, 1.0, 2.0, 0.0, 0.0}, {1.0, 1.0, 1.0, 0.0, 0.0, NAN}})
  {
    EXPECT_TRUE(refused("payload.inertia", none, "'payload.inertia'"));
  }
  EXPECT_TRUE(node.set_parameter({"payload.inertia", std::vector<double>{0.1, 0.1, 0.2, 0.0, 0.0, 0.0}}) == "");
}

TEST_F(Plugin, AParameterThatIsSetTakesEffect)
{
  plant.q[1] = 0.5;
  begin(false);
  cycles(300);
  EXPECT_TRUE(controller.get_node()->set_parameter({"effort_limits.maximum", std::vector<double>{0.5}}) == "");
  cycles(1);
  EXPECT_TRUE(std::abs(written()[1]) > 0.5);    // until the timer
  said("mode");
  cycles(1);
  EXPECT_TRUE(std::abs(written()[1]) <= 0.5);
}

TEST_F(Plugin, ALoopThatIsSlowerThanItsTimeoutIsRefused)
{
  controller_interface::ControllerInterfaceParams params;
  params.update_rate = 15;
  EXPECT_TRUE(controller.init(params) == return_type::OK);
  EXPECT_TRUE(controller.configure().id() == Lifecycle::PRIMARY_STATE_UNCONFIGURED);
  EXPECT_TRUE(logged().back().find("two periods of 'update_rate' (15 Hz)") != std::string::npos);
}

TEST_F(Plugin, WhatCannotBeConfiguredIsSaid)
{
  controller_interface::ControllerInterfaceParams params;
  params.node_options.parameter_overrides({{"feedforward", "impedance"}});
  EXPECT_TRUE(controller.init(params) == return_type::OK);
  EXPECT_TRUE(controller.configure().id() == Lifecycle::PRIMARY_STATE_UNCONFIGURED);
  EXPECT_TRUE(logged().back().find("'impedance' needs a stiffness") != std::string::npos);
}
}  // namespace

int main() {return RUN_ALL_TESTS();}
