# add_protocols(TARGET FILE.proto...): what protobuf-c makes of descriptions of messages, to link
# and to include as X.pb-c.h. Its library is linked in where the distribution has an archive of it,
# as cmake/native_libraries.cmake does and for the same reason.
pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)
find_program(PROTOC_C protoc-c REQUIRED)
find_library(PROTOBUF_C_ARCHIVE libprotobuf-c.a)
mark_as_advanced(PROTOC_C PROTOBUF_C_ARCHIVE)

add_library(protobuf_c INTERFACE)
if(PROTOBUF_C_ARCHIVE AND (NATIVE_ARCHIVES_LINK OR NATIVE_ARCHIVES_LINK_WITH_TREE))
  target_link_libraries(protobuf_c INTERFACE ${PROTOBUF_C_ARCHIVE})
  target_include_directories(protobuf_c SYSTEM INTERFACE ${PROTOBUF_C_INCLUDE_DIRS})
else()
  target_link_libraries(protobuf_c INTERFACE PkgConfig::PROTOBUF_C)
endif()

function(add_protocols target)
  set(folder ${PROJECT_BINARY_DIR}/${target})
  file(MAKE_DIRECTORY ${folder})
  foreach(proto IN LISTS ARGN)
    get_filename_component(name ${proto} NAME_WE)
    get_filename_component(source ${proto} DIRECTORY)
    add_custom_command(
      OUTPUT ${folder}/${name}.pb-c.c ${folder}/${name}.pb-c.h
      COMMAND ${PROTOC_C} --c_out=${folder} --proto_path=${PROJECT_SOURCE_DIR}/${source}
              ${PROJECT_SOURCE_DIR}/${proto}
      DEPENDS ${proto})
    list(APPEND made ${folder}/${name}.pb-c.c)
  endforeach()
  add_library(${target} STATIC ${made})
  target_include_directories(${target} SYSTEM PUBLIC ${folder})
  target_compile_options(${target} PRIVATE -w)
  target_link_libraries(${target} PUBLIC protobuf_c PRIVATE sanitizers)
endfunction()
