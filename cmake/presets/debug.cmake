# cmake -C cmake/presets/debug.cmake -G Ninja -S . -B build/debug
set(CMAKE_BUILD_TYPE Debug CACHE STRING "")
