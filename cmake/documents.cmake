# The man page and the completions, which the program itself writes, so that they say what it takes.
set(share_folder share)
if(DEFINED SKBUILD_DATA_DIR)
  set(share_folder ${SKBUILD_DATA_DIR}/share)
endif()

function(add_document program form file folder)
  set(path ${PROJECT_BINARY_DIR}/documents/${file})
  add_custom_command(OUTPUT ${path} VERBATIM
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/documents
    COMMAND ${program} document ${form} > ${path}
    DEPENDS ${program})
  add_custom_target(document_${form} ALL DEPENDS ${path})
  install(FILES ${path} DESTINATION ${share_folder}/${folder})
endfunction()

function(add_documents program)
  add_document(${program} man ${program}.1 man/man1)
  add_document(${program} bash ${program} bash-completion/completions)
  add_document(${program} zsh _${program} zsh/site-functions)
  add_document(${program} fish ${program}.fish fish/vendor_completions.d)
endfunction()
