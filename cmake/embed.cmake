# Files as C texts: NAME_EXT and NAME_EXT_sha256, its hash in base64 as a page's policy has it, in a
# header that is made anew when one of them changes. This file is also the script that makes it.

set(base64 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")

# Three bytes, six hexadecimal digits, are four characters; the last two of 32 bytes are three.
function(to_base64 hex ret)
  string(APPEND hex "00")
  set(text "")
  foreach(at RANGE 0 60 6)
    string(SUBSTRING ${hex} ${at} 6 digits)
    math(EXPR bits "0x${digits}")
    foreach(shift 18 12 6 0)
      math(EXPR index "(${bits} >> ${shift}) & 63")
      string(SUBSTRING ${base64} ${index} 1 character)
      string(APPEND text ${character})
    endforeach()
  endforeach()
  string(SUBSTRING ${text} 0 43 text)
  set(${ret} "${text}=" PARENT_SCOPE)
endfunction()

function(write_header header files)
  set(text "/* Made by cmake/embed.cmake. */\n#pragma once\n")
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME)
    string(MAKE_C_IDENTIFIER ${name} name)
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
    file(SHA256 ${file} hash)
    to_base64(${hash} hash)
    set(declared "__attribute__((unused)) static const char ${name}")
    string(APPEND text "${declared}[] = {\n${bytes}0 };\n${declared}_sha256[] = \"${hash}\";\n")
  endforeach()
  file(WRITE ${header} "${text}")
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
  write_header(${HEADER} "${FILES}")
  return()
endif()

# Sources of the target include it as FOLDER/embedded.h.
function(embed_files target folder)
  set(header ${PROJECT_BINARY_DIR}/embedded/${folder}/embedded.h)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/${folder}/ OUTPUT_VARIABLE files)
  add_custom_command(OUTPUT ${header} VERBATIM
    COMMAND ${CMAKE_COMMAND} -DHEADER=${header} "-DFILES=${files}"
            -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake)
  target_sources(${target} PRIVATE ${header})
  target_include_directories(${target} PRIVATE ${PROJECT_BINARY_DIR}/embedded)
endfunction()
