# The lines of a probe and of print_layout must be the same, in any order. Names each line that only
# one of them has.
function(read_lines ret)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" lines "${text}")
  set(${ret} ${lines} PARENT_SCOPE)
endfunction()

read_lines(headers ${probe})
read_lines(ours ${print} ${release})
# A number that our data leave to the target is any number of these headers, of the same width.
foreach(line IN LISTS ours)
  if(line MATCHES "^([a-z]+)\\.([a-z_]+) from-target ([0-9]+)$")
    set(any "^${CMAKE_MATCH_1}\\.${CMAKE_MATCH_2} [0-9]+ ${CMAKE_MATCH_3}$")
    list(TRANSFORM headers REPLACE ${any} ${line})
  endif()
endforeach()
set(only_headers ${headers})
set(only_ours ${ours})
list(REMOVE_ITEM only_headers ${ours})
list(REMOVE_ITEM only_ours ${headers})
list(LENGTH headers count)
if(count LESS 70 OR only_headers OR only_ours)
  list(JOIN only_headers "\n  " only_headers)
  list(JOIN only_ours "\n  " only_ours)
  message(FATAL_ERROR "${release}: ${count} lines from the headers\n"
                      "only in the headers:\n  ${only_headers}\n"
                      "only in our layout:\n  ${only_ours}")
endif()
message("${release}: all ${count} lines agree")
