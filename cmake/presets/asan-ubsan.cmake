# cmake -C cmake/presets/asan-ubsan.cmake -G Ninja -S . -B build/asan-ubsan
set(CMAKE_BUILD_TYPE Debug CACHE STRING "")
set(SCALENE_ATTACH_SANITIZE address,undefined CACHE STRING "")
