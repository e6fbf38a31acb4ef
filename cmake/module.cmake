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
if(DEFINED SKBUILD_SCRIPTS_DIR)
  set(program_folder ${SKBUILD_SCRIPTS_DIR})
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
