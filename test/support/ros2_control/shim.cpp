// The generated controller without ROS, for ctypes. PACKAGE: its namespace; its header of parameters is included before.
#include <string>
#include <type_traits>
#include <vector>

#include "settings.hpp"
#include "torque_controller.hpp"

using namespace PACKAGE;

namespace
{
TorqueController controller;
Params params;

template <class Visit>
void set(const char * name, Visit && visit)
{
  for_each_parameter(params, [&](const std::string & each, auto & field) {
      if (each == name) {
        visit(field);
      }
    });
}

Settings settings() {return SettingsReader<Params>(params).settings();}

Vector vector(const double * x)
{
  Vector copy;
  std::copy(x, x + N, copy.begin());
  return copy;
}

int answer(const Vector & effort, double * out)
{
  std::copy(effort.begin(), effort.end(), out);
  return static_cast<int>(controller.mode());
}
}  // namespace

extern "C" {
void set_defaults() {params = Params{};}
void set_numbers(const char * name, const double * numbers, int count)
{
  set(name, [&](auto & field) {
      if constexpr (std::is_arithmetic_v<std::decay_t<decltype(field)>>) {
        field = *numbers;
      } else if constexpr (std::is_same_v<decltype(field), std::vector<double> &>) {
        field.assign(numbers, numbers + count);
      }
    });
}
void set_texts(const char * name, const char * const * texts, int count)
{
  set(name, [&](auto & field) {
      if constexpr (std::is_same_v<decltype(field), std::string &>) {
        field = *texts;
      } else if constexpr (std::is_same_v<decltype(field), std::vector<std::string> &>) {
        field.assign(texts, texts + count);
      }
    });
}
void configure() {controller.configure(settings());}
void use() {controller.use(settings());}
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
