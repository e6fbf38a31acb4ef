# The target `yyjson`: the system's library, or a pinned release built from source. Debian 12 has no
# package, so the source comes from the Python index (the binding's sdist carries the C library,
# 0.10.0).
pkg_check_modules(YYJSON QUIET IMPORTED_TARGET yyjson>=0.8)
if(YYJSON_FOUND)
  add_library(yyjson INTERFACE)
  target_link_libraries(yyjson INTERFACE PkgConfig::YYJSON)
  return()
endif()

pinned_source(yyjson_source yyjson-4.0.6
  fcd4dc15c1e39a30bf9fa85d56903029111506860fc3080ab0d81c6c6dacaa8c
  FILES yyjson/yyjson.c yyjson/yyjson.h ADVICE ", or an installed libyyjson-dev")
add_library(yyjson STATIC ${yyjson_source}/yyjson/yyjson.c)
target_include_directories(yyjson SYSTEM PUBLIC ${yyjson_source}/yyjson)
target_link_libraries(yyjson PRIVATE sanitizers)
