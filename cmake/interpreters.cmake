# The interpreters that tests may use, as the file `interpreters_list`, and how a tier reads it.
set(interpreters_list ${PROJECT_BINARY_DIR}/interpreters.json)
execute_process(
  COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/interpreters ${interpreters_list}
  COMMAND_ERROR_IS_FATAL ANY)

# The releases that pyabi knows: the names of its layout files, 3_13t as 3.13t.
function(find_known_releases ret)
  file(GLOB files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/pyabi/releases
       ${PROJECT_SOURCE_DIR}/pyabi/releases/cpython_*.c)
  list(TRANSFORM files REPLACE "^cpython_(.*)\\.c$" "\\1")
  list(TRANSFORM files REPLACE "_" ".")
  set(${ret} ${files} PARENT_SCOPE)
endfunction()

# The releases that there is an interpreter for.
function(find_installed_releases ret)
  file(READ ${interpreters_list} list)
  string(JSON count LENGTH ${list})
  set(releases "")
  if(count GREATER 0)
    math(EXPR last "${count} - 1")
    foreach(i RANGE ${last})
      string(JSON release GET ${list} ${i} release)
      list(APPEND releases ${release})
    endforeach()
  endif()
  list(REMOVE_DUPLICATES releases)
  set(${ret} ${releases} PARENT_SCOPE)
endfunction()
