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

# Some distributions' libunwind.a is not position-independent, and some archives of elfutils lack a
# part that they need: all of them is linked to see.
function(try_native_archives result)
  file(WRITE ${PROJECT_BINARY_DIR}/native_archives.c "
    #include <elfutils/libdwfl.h>
    #include <libunwind-ptrace.h>
    int main(void) { return dwfl_begin(0) && unw_create_addr_space(&_UPT_accessors, 0); }")
  try_compile(${result} SOURCES ${PROJECT_BINARY_DIR}/native_archives.c ${ARGN}
    LINK_OPTIONS -no-pie
    LINK_LIBRARIES -Wl,--whole-archive ${NATIVE_ARCHIVE_dw} ${NATIVE_ARCHIVE_elf}
                   -Wl,--no-whole-archive ${native_archives})
endfunction()

set(search_tree ${CMAKE_CURRENT_LIST_DIR}/search_tree.c)
if(SCALENE_ATTACH_STATIC_LIBRARIES AND NOT SCALENE_ATTACH_SANITIZE)
  find_native_archives(native_archives)
  if(native_archives)
    try_native_archives(NATIVE_ARCHIVES_LINK)
    if(NOT NATIVE_ARCHIVES_LINK)
      try_native_archives(NATIVE_ARCHIVES_LINK_WITH_TREE ${search_tree})
    endif()
  endif()
endif()

add_library(native_libraries INTERFACE)
if(NATIVE_ARCHIVES_LINK OR NATIVE_ARCHIVES_LINK_WITH_TREE)
  if(NATIVE_ARCHIVES_LINK_WITH_TREE)
    add_library(search_tree STATIC ${search_tree})
    target_link_libraries(search_tree PRIVATE warnings)
    set(native_archives -Wl,--start-group ${native_archives} $<TARGET_FILE:search_tree>
        -Wl,--end-group)
    add_dependencies(native_libraries search_tree)
  endif()
  target_link_libraries(native_libraries INTERFACE ${native_archives})
  target_link_options(native_libraries INTERFACE -no-pie)
else()
  target_link_libraries(native_libraries INTERFACE PkgConfig::NATIVE)
endif()
