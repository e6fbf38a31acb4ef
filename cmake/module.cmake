# What a module is to the build: one folder, one static library, named as the folder. The link graph
# that the top-level file spells with these calls is the layer table of CONTRIBUTING.md.

# Header-only while it has no source yet, so that the graph stands before the code.
function(add_module folder)
  cmake_parse_arguments(ARG "" "" "LINKS" ${ARGN})
  string(REPLACE "/" "_" target ${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.c ${folder}/releases/*.c)
  list(FILTER sources EXCLUDE REGEX "/main\\.c$")
  if(sources)
    add_library(${target} STATIC ${sources})
    target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
    target_link_libraries(${target} PUBLIC ${ARG_LINKS} PRIVATE warnings sanitizers)
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${target} INTERFACE ${ARG_LINKS})
  endif()
endfunction()

# A wheel wants programs elsewhere.
set(program_folder bin)
set(preload_folder lib/scalene-attach)
if(DEFINED SKBUILD_SCRIPTS_DIR)
  set(program_folder ${SKBUILD_SCRIPTS_DIR})
  set(preload_folder ${SKBUILD_DATA_DIR}/lib/scalene-attach)
endif()

# A module like any other, which tests can link, and the main.c on top of it.
function(add_program name folder)
  cmake_parse_arguments(ARG "" "" "LINKS" ${ARGN})
  add_module(${folder} LINKS ${ARG_LINKS})
  string(REPLACE "/" "_" module ${folder})
  add_executable(${name} ${folder}/main.c)
  target_link_libraries(${name} PRIVATE ${module} warnings sanitizers)
  target_compile_definitions(${name} PRIVATE SCALENE_ATTACH_VERSION="${PROJECT_VERSION}")
  install(TARGETS ${name} RUNTIME DESTINATION ${program_folder})
endfunction()

# The library that the profiler brings into other processes: libc alone, nothing seen of it but what
# it stands in front of, and never with a sanitizer's runtime, which those processes have not. What
# Ubuntu's compiler fortifies by itself would be in front of those functions already. Its symbols
# lie in pages without code, and exceptions may pass through what it does.
function(add_preload name folder)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.c)
  add_library(${name} SHARED ${sources})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(${name} PRIVATE -O2 -fvisibility=hidden -fno-builtin
                         -U_FORTIFY_SOURCE -fasynchronous-unwind-tables)
  target_link_options(${name} PRIVATE LINKER:-z,now LINKER:-z,separate-code LINKER:--no-undefined
                      LINKER:-Bsymbolic-functions LINKER:--build-id=sha1)
  target_link_libraries(${name} PRIVATE warnings)
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  install(TARGETS ${name} LIBRARY DESTINATION ${preload_folder})
endfunction()

# The parts of it that hook nothing, for tests to link.
function(add_preload_parts name folder)
  list(TRANSFORM ARGN PREPEND ${folder}/ OUTPUT_VARIABLE sources)
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE warnings sanitizers)
endfunction()
