#include <dlfcn.h>
#include <doctest/doctest.h>
#include <link.h>

#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "verbs/preload_instruction_length.h"

using weir::instruction_length;

namespace {

size_t length_of(std::initializer_list<uint8_t> code) { return instruction_length(std::vector<uint8_t>(code)); }

#if defined(__x86_64__)

// The instruction of a line of `objdump -dw`; none where it has none, or none that it knows. With WAIT (9b) it takes two for one.
std::vector<uint8_t> code_of(const std::string& line) {
  const size_t begin = line.find(":\t");
  const size_t end = line.find('\t', begin + 2);
  if (begin == std::string::npos || end == std::string::npos || line.find("(bad)") != std::string::npos) return {};
  std::istringstream text(line.substr(begin + 2, end - begin - 2));
  std::vector<uint8_t> code;
  for (unsigned byte; text >> std::hex >> byte;) code.push_back(static_cast<uint8_t>(byte));
  if (code.size() > 1 && code[0] == 0x9b) return {};
  return code;
}

std::string path_of(const char* library) {
  void* const handle = ::dlopen(library, RTLD_LAZY);
  REQUIRE(handle != nullptr);
  const link_map* map = nullptr;
  REQUIRE(::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0);
  const std::string path = map->l_name;
  ::dlclose(handle);
  return path;
}

#endif

}  // namespace

TEST_SUITE("verbs: instruction length") {
  TEST_CASE("is that of opcode, operand, displacement and immediate") {
    CHECK(length_of({0x0f, 0x31}) == 2);                                      // rdtsc
    CHECK(length_of({0x0f, 0x01, 0xf9}) == 3);                                // rdtscp
    CHECK(length_of({0xc3, 0x0f, 0x31}) == 1);                                // ret
    CHECK(length_of({0x48, 0xb8, 0x0f, 0x31, 0, 0, 0, 0, 0, 0}) == 10);       // movabs $0x310f,%rax
    CHECK(length_of({0x8d, 0x04, 0x25, 0x0f, 0x31, 0, 0}) == 7);              // lea 0x310f,%eax
    CHECK(length_of({0x66, 0x81, 0x38, 0x0f, 0x31}) == 5);                    // cmpw $0x310f,(%rax)
    CHECK(length_of({0xf7, 0x44, 0x24, 0x08, 0x0f, 0x31, 0, 0}) == 8);        // testl $0x310f,8(%rsp)
    CHECK(length_of({0xf7, 0xd8}) == 2);                                      // neg %eax
    CHECK(length_of({0xc5, 0xf8, 0x77}) == 3);                                // vzeroupper
    CHECK(length_of({0x62, 0xf1, 0xfe, 0x28, 0x6f, 0x46, 0x01}) == 7);        // vmovdqu64 32(%rsi),%ymm0
    CHECK(length_of({0x66, 0x0f, 0x3a, 0x0f, 0xc8, 0x08}) == 6);              // palignr $8,%xmm0,%xmm1
    CHECK(length_of({0x66, 0x66, 0x48, 0xe8, 0x01, 0x02, 0x03, 0x04}) == 8);  // data16 data16 rex.W call
  }

  TEST_CASE("is 0 for what is none, or ends too early") {
    CHECK(length_of({}) == 0);
    CHECK(length_of({0x0f}) == 0);
    CHECK(length_of({0x06}) == 0);
    CHECK(length_of({0xe8, 0x01, 0x02, 0x03}) == 0);
    CHECK(length_of({0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x0f, 0x31}) == 0);
  }

#if defined(__x86_64__)
  TEST_CASE("is what binutils say, for all of the C and the mathematical library") {
    for (const char* library : {"libc.so.6", "libm.so.6"}) {
      CAPTURE(library);
      const std::string command = "objdump -dw " + path_of(library);
      const std::unique_ptr<FILE, int (*)(FILE*)> output(::popen(command.c_str(), "r"), ::pclose);
      REQUIRE(output != nullptr);
      size_t looked_at = 0, wrong = 0;
      std::string line;
      for (int c; (c = ::getc_unlocked(output.get())) != EOF;) {
        if (c != '\n') {
          line += static_cast<char>(c);
          continue;
        }
        const std::vector<uint8_t> code = code_of(line);
        if (!code.empty()) {
          ++looked_at;
          if (instruction_length(code) != code.size() && ++wrong < 20) MESSAGE(line);
        }
        line.clear();
      }
      CHECK(looked_at > 10'000);
      CHECK(wrong == 0);
    }
  }
#endif
}
