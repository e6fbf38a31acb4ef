# cmake -C cmake/presets/tsan.cmake -G Ninja -S . -B build/tsan
set(CMAKE_BUILD_TYPE Debug CACHE STRING "")
set(SCALENE_ATTACH_SANITIZE thread CACHE STRING "")
