// The arithmetic of the controller, on the C that `rbd generate --name arm` wrote. It knows no ROS, takes no memory
// and never waits.
#ifndef FEEDFORWARD_EFFORT_CONTROLLER__TORQUE_LAW_HPP_
#define FEEDFORWARD_EFFORT_CONTROLLER__TORQUE_LAW_HPP_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "arm.h"

namespace feedforward_effort_controller
{

static_assert(ARM_NQ == ARM_NV, "an arm whose joints have one coordinate each");
constexpr std::size_t kJoints = ARM_NV;
using Vector = std::array<double, kJoints>;    // in the order of arm_joint_names, SI units

struct Reference
{
  Vector position{};
  Vector velocity{};
  Vector acceleration{};
};

inline bool finite(const Vector & values)
{
  return std::all_of(values.begin(), values.end(), [](double value) {return std::isfinite(value);});
}

inline bool finite(const Reference & reference)
{
  return finite(reference.position) && finite(reference.velocity) && finite(reference.acceleration);
}

// How long ago the last reference came, as the sum of the periods of updates since: the time of an update is not the
// node's (the controller manager counts from the start of the machine), and a node's may be set back.
class Age
{
public:
  // Once per update. number: of the last reference, from 1; 0 where none came
  bool within(double timeout, std::uint64_t number, double period)
  {
    age_ = number == number_ ? age_ + period : 0.0;
    number_ = number;
    return number != 0 && age_ < timeout;
  }

private:
  std::uint64_t number_ = 0;
  double age_ = 0.0;    // s
};

// hold = g(q) - damping v, and with a reference track = ID(reference) + stiffness (position error)
// + damping (velocity error). The output is hold + weight (track - hold), within the effort limits; the weight goes
// from 0 to 1 and back within `ramp` seconds, so that the torque does not step where references begin and end.
class TorqueLaw
{
public:
  Vector stiffness{};    // N m/rad
  Vector damping{};    // N m s/rad
  double ramp = 0.5;    // s

  void reset() {weight_ = 0.0; begun_ = false;}
  double weight() const {return weight_;}

  // Whether nothing has been measured since `reset`: state interfaces are NaN until the hardware's first state
  bool awaits(const Vector & q, const Vector & v) const {return !begun_ && !(finite(q) && finite(v));}

  // reference: null where there is none. False, and effort as it was, where no torque can be computed.
  bool update(
    const Vector & q, const Vector & v, const Reference * reference, double period, Vector & effort)
  {
    if (!finite(q) || !finite(v) || !(period >= 0.0)) {
      return false;
    }
    Vector hold, track;
    if (arm_gravity_effort(q.data(), hold.data()) != 0) {
      return false;
    }
    const bool given = reference != nullptr && finite(*reference);
    if (given) {
      last_ = *reference;
    }
    const double step = ramp > 0.0 ? period / ramp : 1.0;
    const double weight = given ? std::min(1.0, weight_ + step) : std::max(0.0, weight_ - step);
    for (std::size_t i = 0; i < kJoints; ++i) {
      hold[i] -= damping[i] * v[i];
    }
    track = hold;
    if (weight > 0.0) {
      if (arm_inverse_dynamics(
          last_.position.data(), last_.velocity.data(), last_.acceleration.data(), track.data()) != 0)
      {
        return false;
      }
      for (std::size_t i = 0; i < kJoints; ++i) {
        track[i] += stiffness[i] * (last_.position[i] - q[i]) + damping[i] * (last_.velocity[i] - v[i]);
      }
    }
    Vector out;
    for (std::size_t i = 0; i < kJoints; ++i) {
      const double limit = arm_effort_limit[i];
      hold[i] = std::clamp(hold[i], -limit, limit);
      track[i] = std::clamp(track[i], -limit, limit);
      out[i] = hold[i] + weight * (track[i] - hold[i]);
    }
    if (!finite(out)) {
      return false;
    }
    weight_ = weight;
    begun_ = true;
    effort = out;
    return true;
  }

private:
  double weight_ = 0.0;
  bool begun_ = false;
  Reference last_{};
};

}  // namespace feedforward_effort_controller

#endif  // FEEDFORWARD_EFFORT_CONTROLLER__TORQUE_LAW_HPP_
