# The interpreters that tests may use, as `interpreters_list`: a file that cmake/interpreters writes.
set(interpreters_list ${PROJECT_BINARY_DIR}/interpreters.json)
