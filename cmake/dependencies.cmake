# Foreign libraries, each as one target to link. Found on the system; none of their source is in
# this tree.
find_package(PkgConfig REQUIRED)
pkg_check_modules(ELF REQUIRED IMPORTED_TARGET libelf)
pkg_check_modules(DW REQUIRED IMPORTED_TARGET libdw)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(UNWIND REQUIRED IMPORTED_TARGET libunwind-ptrace libunwind-generic)
if(SCALENE_ATTACH_TESTS)
  pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
endif()

# libiberty has no .pc file; it is the demangler of binutils and gdb.
find_library(IBERTY_LIBRARY iberty REQUIRED)
find_path(IBERTY_INCLUDE demangle.h PATH_SUFFIXES libiberty REQUIRED)
add_library(iberty INTERFACE)
target_link_libraries(iberty INTERFACE ${IBERTY_LIBRARY})
target_include_directories(iberty SYSTEM INTERFACE ${IBERTY_INCLUDE})

include(pinned_source)
include(yyjson)
include(tree_sitter)
