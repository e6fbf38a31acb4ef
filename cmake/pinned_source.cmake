# Foreign source that no distribution carries: one release, from the Python index, by name and hash.
# It is kept in the user's cache, so that the network is needed once; none of it is in this tree.
if(DEFINED ENV{XDG_CACHE_HOME})
  set(pinned_cache $ENV{XDG_CACHE_HOME}/scalene-attach)
else()
  set(pinned_cache $ENV{HOME}/.cache/scalene-attach)
endif()

# pip checks the hash before it looks into the archive, and compiles nothing.
function(download_pinned_source sdist sha256 advice)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  message(STATUS "${sdist}: fetching it from the Python index")
  string(REGEX REPLACE "-([0-9.]+)$" "==\\1" requirement ${sdist})
  string(REGEX REPLACE "=.*" "" package ${requirement})
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/download)
  file(WRITE ${folder}/${sdist}.txt "${requirement} --hash=sha256:${sha256}\n")
  execute_process(
    COMMAND ${Python3_EXECUTABLE} -m pip download --quiet --disable-pip-version-check --no-deps
            --require-hashes --no-binary ${package} --dest ${folder} -r ${folder}/${sdist}.txt
    RESULT_VARIABLE status ERROR_VARIABLE errors)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "cannot fetch ${requirement}; it takes python3-pip and a network${advice}\n"
                        "${errors}")
  endif()
  file(MAKE_DIRECTORY ${pinned_cache})
  file(COPY_FILE ${folder}/${sdist}.tar.gz ${pinned_cache}/${sdist}.tar.gz.new)
  file(RENAME ${pinned_cache}/${sdist}.tar.gz.new ${pinned_cache}/${sdist}.tar.gz)
endfunction()

# pinned_source(RET SDIST SHA256 FILES paths in it [ADVICE what else would do]): unpacks those files
# of the release named as its archive is, NAME-VERSION; sets RET to the folder they stand in.
function(pinned_source ret sdist sha256)
  cmake_parse_arguments(ARG "" "ADVICE" "FILES" ${ARGN})
  set(archive ${pinned_cache}/${sdist}.tar.gz)
  if(NOT EXISTS ${archive})
    download_pinned_source(${sdist} ${sha256} "${ARG_ADVICE}")
  endif()
  file(SHA256 ${archive} found_sha256)
  if(NOT found_sha256 STREQUAL sha256)
    message(FATAL_ERROR "${archive} is not the pinned release; delete it")
  endif()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${sdist})
  list(TRANSFORM ARG_FILES PREPEND ${sdist}/ OUTPUT_VARIABLE members)
  list(GET ARG_FILES -1 last)
  if(NOT EXISTS ${folder}/${last})
    file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${CMAKE_CURRENT_BINARY_DIR}
         PATTERNS ${members})
  endif()
  set(${ret} ${folder} PARENT_SCOPE)
endfunction()
