# elfutils and libunwind as one target. Where the distribution has archives of them and of all that
# they need, they are linked into the program: to load and relocate eight shared libraries takes
# longer than to dump a process's stacks.
option(SCALENE_ATTACH_STATIC_LIBRARIES "link elfutils and libunwind statically if they can be" ON)

pkg_check_modules(NATIVE REQUIRED IMPORTED_TARGET libdw libelf libunwind-ptrace libunwind-generic)

function(find_native_archives ret)
  set(names ${NATIVE_STATIC_LIBRARIES})
  list(REMOVE_DUPLICATES names)
  list(REMOVE_ITEM names pthread m c dl)
  foreach(name ${names})
    find_library(NATIVE_ARCHIVE_${name} lib${name}.a)
    mark_as_advanced(NATIVE_ARCHIVE_${name})
    if(NOT NATIVE_ARCHIVE_${name})
      return()
    endif()
    list(APPEND archives ${NATIVE_ARCHIVE_${name}})
  endforeach()
  set(${ret} -Wl,--start-group ${archives} -Wl,--end-group PARENT_SCOPE)
endfunction()

# Some distributions' libunwind.a is not position-independent, and the archives of elfutils 0.192
# lack a part that they need: all of them is linked to see.
if(SCALENE_ATTACH_STATIC_LIBRARIES AND NOT SCALENE_ATTACH_SANITIZE)
  find_native_archives(native_archives)
  include(CheckCSourceCompiles)
  set(CMAKE_REQUIRED_LIBRARIES -Wl,--whole-archive ${NATIVE_ARCHIVE_dw} ${NATIVE_ARCHIVE_elf}
      -Wl,--no-whole-archive ${native_archives})
  set(CMAKE_REQUIRED_LINK_OPTIONS -no-pie)
  check_c_source_compiles("
    #include <elfutils/libdwfl.h>
    #include <libunwind-ptrace.h>
    int main(void) { return dwfl_begin(0) && unw_create_addr_space(&_UPT_accessors, 0); }"
    NATIVE_ARCHIVES_LINK)
  unset(CMAKE_REQUIRED_LIBRARIES)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
endif()

add_library(native_libraries INTERFACE)
if(native_archives AND NATIVE_ARCHIVES_LINK)
  target_link_libraries(native_libraries INTERFACE ${native_archives})
  target_link_options(native_libraries INTERFACE -no-pie)
else()
  target_link_libraries(native_libraries INTERFACE PkgConfig::NATIVE)
endif()
