// The few macros of googletest that the generated tests use. Arguments: names of tests to run; none: all.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace testing
{
class Test
{
public:
  virtual ~Test() = default;
  virtual void SetUp() {}
  virtual void TearDown() {}
  virtual void TestBody() = 0;
};

struct Registered
{
  std::string name;
  std::function<Test * ()> make;
};
inline std::vector<Registered> & all()
{
  static std::vector<Registered> tests;
  return tests;
}
inline int & failures()
{
  static int count = 0;
  return count;
}
inline void InitGoogleTest(int *, char **) {}
inline int fail(const char * file, int line, const char * what)
{
  std::printf("%s:%d: %s\n", file, line, what);
  return ++failures();
}
inline int fail(const char * file, int line, const char * what, double found)
{
  std::printf("%s:%d: %s, found %g\n", file, line, what, found);
  return ++failures();
}
}  // namespace testing

inline int RUN_ALL_TESTS()
{
  for (const auto & test : ::testing::all()) {
    const int before = ::testing::failures();
    auto * const made = test.make();
    made->SetUp();
    made->TestBody();
    made->TearDown();
    delete made;
    std::printf("%s %s\n", ::testing::failures() == before ? "ok" : "FAILED", test.name.c_str());
  }
  return ::testing::failures() > 0;
}

#define TEST_F(Fixture, Name) \
  class Name : public Fixture {void TestBody() override;}; \
  static const bool registered_##Name = (::testing::all().push_back({#Name, [] {return new Name;}}), true); \
  void Name::TestBody()
#define EXPECT_TRUE(x) do {if (!(x)) {::testing::fail(__FILE__, __LINE__, #x);}} while (0)
#define EXPECT_FALSE(x) EXPECT_TRUE(!(x))
#define ASSERT_TRUE(x) do {if (!(x)) {::testing::fail(__FILE__, __LINE__, #x); return;}} while (0)
#define EXPECT_LT(x, y) do {if (!((x) < (y))) {::testing::fail(__FILE__, __LINE__, #x " < " #y, x);}} while (0)
#define EXPECT_NEAR(x, y, within) \
  do {if (!(std::abs((x) - (y)) <= (within))) {::testing::fail(__FILE__, __LINE__, #x " near " #y, (x) - (y));}} while (0)
