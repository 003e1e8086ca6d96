// The solver plugin for ctypes. PACKAGE: its namespace.
#include "inverse_dynamics.cpp"

namespace
{
using Map = Eigen::Map<const Eigen::VectorXd>;
PACKAGE::InverseDynamics solver;

void put(const Eigen::VectorXd & x, double * out) {std::copy(x.data(), x.data() + x.size(), out);}
}  // namespace

extern "C" {
// 0; 1 uninitialized, 2 wrong parameter. A load on `link`, inertias or no inertias.
int initialize(const char * link, double mass, const double * centre, int count)
{
  auto parameters = std::make_shared<rclcpp::node_interfaces::NodeParametersInterface>();
  const auto add = [&parameters](const std::string & name, const rclcpp::Parameter::Value & value) {
      parameters->all["arm." + name] = rclcpp::Parameter("arm." + name, value);
    };
  add("payload.body", std::string(link));
  add("payload.mass", mass);
  add("payload.com", std::vector<double>(centre, centre + count));
  try {
    solver.initialize(parameters, "arm", "");
  } catch (const inverse_dynamics_solver::InvalidParameterValueException &) {
    return 2;
  }
  return 0;
}
int torques(int n, const double * q, const double * v, const double * a, double * out)
{
  try {
    put(solver.getTorques(Map(q, n), Map(v, n), Map(a, n)), out);
  } catch (const inverse_dynamics_solver::UninitializedException &) {
    return 1;
  } catch (const std::invalid_argument &) {
    return 2;
  }
  return 0;
}
void parts(int n, const double * q, const double * v, double * mass, double * coriolis, double * gravity, double * rub)
{
  const Eigen::MatrixXd M = solver.getInertiaMatrix(Map(q, n)).transpose();
  std::copy(M.data(), M.data() + n * n, mass);
  put(solver.getCoriolisVector(Map(q, n), Map(v, n)), coriolis);
  put(solver.getGravityVector(Map(q, n)), gravity);
  put(solver.getFrictionVector(Map(v, n)), rub);
}
}
