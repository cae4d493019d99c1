# The fallback of CMakeLists.txt where there is no cmake: the same sources, standard, defines and flags (test/project holds them together).
# The flag that not all compilers have, which is for two files there, is for all here: there are none of single files.
{
  "targets": [
    {
      "target_name": "weir",
      "sources": ["<!@(cat native/sources.txt)"],
      "include_dirs": ["native", "<!(node -p \"require('node-addon-api').include_dir\")"],
      "defines": ["NAPI_VERSION=8", "NODE_ADDON_API_CPP_EXCEPTIONS_ALL"],
      "cflags!": ["-O3"],
      "cflags_cc!": ["-fno-exceptions", "-fno-rtti", "-std=gnu++17", "-std=gnu++20"],
      "cflags_cc": ["-std=c++20", "-O2", "-ffp-contract=off", "-fvisibility=hidden", "-Wall", "-Wextra", "-flto=auto",
                    "<!@(set -- -mmemset-strategy=vector_loop:256:noalign,libcall:-1:noalign; ${CXX:-c++} $1 -fsyntax-only -x c++ /dev/null 2>/dev/null && echo $1 || true)"],
      "ldflags": ["-pthread", "-flto=auto"],
      "libraries": ["-ldl"]
    }
  ]
}
