# cmake -C cmake/presets/fuzz.cmake -G Ninja -S . -B build/fuzz
set(CMAKE_C_COMPILER clang CACHE STRING "")
set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "")
set(SCALENE_ATTACH_SANITIZE address,undefined CACHE STRING "")
set(SCALENE_ATTACH_FUZZ ON CACHE BOOL "")
