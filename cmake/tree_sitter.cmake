# The target `tree_sitter_python`: the parser of Python's grammar on the system's tree-sitter core.
# The grammar has no package, so its source comes from the Python index. This is the newest release
# of ABI 14, which the cores of Debian 12 (0.20) and later all take; 0.25 wants a newer core. Its
# sdist lacks the headers that the generator adds; they stand in the core's source.
pkg_check_modules(TREE_SITTER REQUIRED IMPORTED_TARGET tree-sitter>=0.6.3)

pinned_source(grammar_source tree_sitter_python-0.23.6
  354bfa0a2f9217431764a631516f85173e9711af2c13dbd796a8815acfe505d9
  FILES src/parser.c src/scanner.c)
set(header_folder tree_sitter/core/lib/src)
pinned_source(header_source tree-sitter-0.23.2
  66bae8dd47f1fed7bdef816115146d3a41c39b5c482d7bad36d9ba1def088450
  FILES ${header_folder}/alloc.h ${header_folder}/array.h ${header_folder}/parser.h
        ${header_folder}/ts_assert.h)

# The grammar includes them as tree_sitter/X.h, a name that the system's headers have, too.
set(grammar_headers ${CMAKE_CURRENT_BINARY_DIR}/tree_sitter_python)
foreach(header IN ITEMS alloc array parser ts_assert)
  configure_file(${header_source}/${header_folder}/${header}.h
                 ${grammar_headers}/tree_sitter/${header}.h COPYONLY)
endforeach()

add_library(tree_sitter_python STATIC ${grammar_source}/src/parser.c ${grammar_source}/src/scanner.c)
target_include_directories(tree_sitter_python BEFORE PRIVATE ${grammar_headers})
target_compile_options(tree_sitter_python PRIVATE -w)
target_link_libraries(tree_sitter_python PUBLIC PkgConfig::TREE_SITTER PRIVATE sanitizers)
