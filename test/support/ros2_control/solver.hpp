// Stand-in for package inverse_dynamics_solver, by its documented interface.
#pragma once

#include <Eigen/Core>

#include <stdexcept>
#include <string>

#include "ros2_control.hpp"

namespace inverse_dynamics_solver
{
using InvalidParameterValueException = rclcpp::exceptions::InvalidParameterValueException;
struct UninitializedException : std::runtime_error
{
  UninitializedException() : std::runtime_error("not initialized") {}
};

class InverseDynamicsSolver
{
public:
  virtual ~InverseDynamicsSolver() = default;
  virtual void initialize(
    rclcpp::node_interfaces::NodeParametersInterface::ConstSharedPtr, const std::string &, const std::string &) = 0;
  virtual Eigen::MatrixXd getInertiaMatrix(const Eigen::VectorXd & q) const = 0;
  virtual Eigen::VectorXd getCoriolisVector(const Eigen::VectorXd & q, const Eigen::VectorXd & v) const = 0;
  virtual Eigen::VectorXd getGravityVector(const Eigen::VectorXd & q) const = 0;
  virtual Eigen::VectorXd getFrictionVector(const Eigen::VectorXd & v) const = 0;
  virtual Eigen::VectorXd getTorques(
    const Eigen::VectorXd & q, const Eigen::VectorXd & v, const Eigen::VectorXd & a) const = 0;
};
}  // namespace inverse_dynamics_solver
