// The generated controller without ROS, for ctypes. PACKAGE: its namespace.
#include <cstddef>

#include "torque_controller.hpp"

using namespace PACKAGE;

namespace
{
TorqueController controller;

struct Reader    // of numbers in the order in which support/generated_controller.py writes them
{
  const double * at;
  double number() {return *at++;}
  Vector vector()
  {
    Vector x;
    for (double & each : x) {
      each = number();
    }
    return x;
  }
};

Vector vector(const double * x) {return Reader{x}.vector();}

Settings settings(const double * numbers)
{
  Reader r{numbers};
  Settings s;
  s.feedforward = static_cast<Feedforward>(static_cast<int>(r.number()));
  s.robot_gravity = r.number() > 0.0;
  s.robot_coriolis = r.number() > 0.0;
  s.robot_friction = r.number() > 0.0;
  for (double * each : {&s.velocity_cutoff, &s.state_timeout, &s.state_rate, &s.min_rate, &s.reference_timeout,
      &s.ramp_in, &s.safe_damping, &s.hold_position, &s.hold, &s.fallback_ramp})
  {
    *each = r.number();
  }
  for (Vector * each : {&s.kp, &s.kd, &s.effort_limit, &s.rate_limit, &s.fallback, &s.tracking_tolerance,
      &s.plausible_velocity})
  {
    *each = r.vector();
  }
  const double smoothing = r.number();
  const Vector rows[] = {r.vector(), r.vector(), r.vector(), r.vector(), r.vector()};
  for (std::size_t i = 0; i < N; ++i) {
    s.friction[i] = {rows[0][i], rows[1][i], smoothing, rows[2][i], rows[3][i], rows[4][i]};
  }
  const Link & link = LINKS[static_cast<std::size_t>(r.number())];
  const double mass = r.number();
  const std::array<double, 3> c{r.number(), r.number(), r.number()};
  std::array<double, 6> about;
  for (double & each : about) {
    each = r.number();
  }
  s.arm.add(link, inertial(mass, c, about));
  return s;
}

int answer(const Vector & effort, double * out)
{
  std::copy(effort.begin(), effort.end(), out);
  return static_cast<int>(controller.mode());
}
}  // namespace

extern "C" {
void configure(const double * numbers) {controller.configure(settings(numbers));}
void use(const double * numbers) {controller.use(settings(numbers));}
void activate(double now) {controller.activate(now);}
void stop() {controller.stop();}
void reset(double now) {controller.reset(now);}
int follow(double now, const double * q, const double * v, const double * a)
{
  return controller.follow(now, Reference{vector(q), vector(v), vector(a)});
}
int stop_here(double now) {return controller.stop_here(now);}
int update(double now, const double * q, const double * v, double * out)
{
  return answer(controller.update(now, vector(q), vector(v)), out);
}
int finish(double * out) {return answer(controller.finish(), out);}
int has_output() {return controller.has_output();}
unsigned counted(int k) {return reinterpret_cast<const std::uint32_t *>(&controller.counts)[k];}
}
