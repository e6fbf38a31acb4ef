# The target `yyjson`: the system's library, or a pinned release built from source. Debian 12 has no
# package, so the source comes from the Python index, by name and hash (the binding's sdist carries
# the C library, 0.10.0). It is kept in the user's cache: the network is needed once.
pkg_check_modules(YYJSON QUIET IMPORTED_TARGET yyjson>=0.8)
if(YYJSON_FOUND)
  add_library(yyjson INTERFACE)
  target_link_libraries(yyjson INTERFACE PkgConfig::YYJSON)
  return()
endif()

set(yyjson_sdist yyjson-4.0.6)
set(yyjson_sha256 fcd4dc15c1e39a30bf9fa85d56903029111506860fc3080ab0d81c6c6dacaa8c)
if(DEFINED ENV{XDG_CACHE_HOME})
  set(yyjson_cache $ENV{XDG_CACHE_HOME}/scalene-attach)
else()
  set(yyjson_cache $ENV{HOME}/.cache/scalene-attach)
endif()
set(yyjson_archive ${yyjson_cache}/${yyjson_sdist}.tar.gz)

# pip checks the hash before it looks into the archive, and compiles nothing.
function(download_yyjson)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  message(STATUS "yyjson: not on this system, fetching ${yyjson_sdist} from the Python index")
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/download)
  string(REPLACE "yyjson-" "yyjson==" requirement ${yyjson_sdist})
  file(WRITE ${folder}/requirements.txt "${requirement} --hash=sha256:${yyjson_sha256}\n")
  execute_process(
    COMMAND ${Python3_EXECUTABLE} -m pip download --quiet --disable-pip-version-check --no-deps
            --require-hashes --no-binary :all: --dest ${folder} -r ${folder}/requirements.txt
    RESULT_VARIABLE status ERROR_VARIABLE errors)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "yyjson: cannot fetch ${requirement}; it takes python3-pip and a network, "
                        "or an installed libyyjson-dev\n${errors}")
  endif()
  file(MAKE_DIRECTORY ${yyjson_cache})
  file(COPY_FILE ${folder}/${yyjson_sdist}.tar.gz ${yyjson_archive}.new)
  file(RENAME ${yyjson_archive}.new ${yyjson_archive})
endfunction()

if(NOT EXISTS ${yyjson_archive})
  download_yyjson()
endif()
file(SHA256 ${yyjson_archive} found_sha256)
if(NOT found_sha256 STREQUAL yyjson_sha256)
  message(FATAL_ERROR "yyjson: ${yyjson_archive} is not the pinned release; delete it")
endif()
set(yyjson_source ${CMAKE_CURRENT_BINARY_DIR}/${yyjson_sdist}/yyjson)
if(NOT EXISTS ${yyjson_source}/yyjson.c)
  file(ARCHIVE_EXTRACT INPUT ${yyjson_archive} DESTINATION ${CMAKE_CURRENT_BINARY_DIR}
       PATTERNS ${yyjson_sdist}/yyjson/yyjson.c ${yyjson_sdist}/yyjson/yyjson.h)
endif()
add_library(yyjson STATIC ${yyjson_source}/yyjson.c)
target_include_directories(yyjson SYSTEM PUBLIC ${yyjson_source})
target_link_libraries(yyjson PRIVATE sanitizers)
