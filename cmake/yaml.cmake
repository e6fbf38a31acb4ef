# The target `yaml`: libyaml, as an archive where the other native libraries are archives too.
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
find_library(YAML_ARCHIVE libyaml.a)
mark_as_advanced(YAML_ARCHIVE)

add_library(yaml INTERFACE)
if(YAML_ARCHIVE AND (NATIVE_ARCHIVES_LINK OR NATIVE_ARCHIVES_LINK_WITH_TREE))
  target_link_libraries(yaml INTERFACE ${YAML_ARCHIVE})
  target_include_directories(yaml SYSTEM INTERFACE ${YAML_INCLUDE_DIRS})
else()
  target_link_libraries(yaml INTERFACE PkgConfig::YAML)
endif()
