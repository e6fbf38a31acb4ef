# The target `tree_sitter_python`: tree-sitter with the parser of Python's grammar, both from the
# Python index. The grammar has no package; this is its last release whose archive is whole but for
# the generator's headers, which stand in the core's source and must fit it. The core of Debian 12
# frees what it never allocated when a file has some 65,000 errors in a row.
set(core tree_sitter/core/lib)
pinned_source(core_source tree-sitter-0.24.0
  abd95af65ca2f4f7eca356343391ed669e764f37748b5352946f00f7fc78e734
  FILES ${core}/* ${core}/src/lib.c)
pinned_source(grammar_source tree_sitter_python-0.23.6
  354bfa0a2f9217431764a631516f85173e9711af2c13dbd796a8815acfe505d9
  FILES src/parser.c src/scanner.c)

# The grammar knows them as tree_sitter/X.h.
set(grammar_headers ${CMAKE_CURRENT_BINARY_DIR}/tree_sitter_python)
foreach(header IN ITEMS alloc array parser ts_assert)
  configure_file(${core_source}/${core}/src/${header}.h
                 ${grammar_headers}/tree_sitter/${header}.h COPYONLY)
endforeach()

add_library(tree_sitter_python STATIC ${core_source}/${core}/src/lib.c
            ${grammar_source}/src/parser.c ${grammar_source}/src/scanner.c)
target_include_directories(tree_sitter_python SYSTEM PUBLIC ${core_source}/${core}/include
                           PRIVATE ${core_source}/${core}/src ${grammar_headers})
target_compile_options(tree_sitter_python PRIVATE -w)
# It calls scanners through pointers of another type, which clang 17 and later find. An option of a
# library that is linked last comes last: it takes back what `sanitizers` asks for.
add_library(any_callee INTERFACE)
target_link_libraries(tree_sitter_python PRIVATE sanitizers any_callee)
include(CheckCCompilerFlag)
check_c_compiler_flag(-fno-sanitize=function CAN_SANITIZE_FUNCTION)
if(CAN_SANITIZE_FUNCTION)
  target_compile_options(any_callee INTERFACE $<$<C_COMPILER_ID:Clang>:-fno-sanitize=function>)
endif()
