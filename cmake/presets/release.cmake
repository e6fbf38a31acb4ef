# cmake -C cmake/presets/release.cmake -G Ninja -S . -B build/release
set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "")
