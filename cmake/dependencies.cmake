# Foreign libraries, each as one target to link. Found on the system; none of their source is in
# this tree.
find_package(PkgConfig REQUIRED)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
if(SCALENE_ATTACH_TESTS)
  pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
endif()

# libiberty has no .pc file; it is the demangler of binutils and gdb.
find_library(IBERTY_LIBRARY iberty REQUIRED)
find_path(IBERTY_INCLUDE demangle.h PATH_SUFFIXES libiberty REQUIRED)
add_library(iberty INTERFACE)
target_link_libraries(iberty INTERFACE ${IBERTY_LIBRARY})
target_include_directories(iberty SYSTEM INTERFACE ${IBERTY_INCLUDE})

include(native_libraries)
include(protocols)
include(yaml)
include(pinned_source)
include(yyjson)
include(tree_sitter)
