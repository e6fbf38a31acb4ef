add_library(warnings INTERFACE)
option(SCALENE_ATTACH_WERROR "warnings are errors" ON)
target_compile_options(warnings INTERFACE
  -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
  $<$<BOOL:${SCALENE_ATTACH_WERROR}>:-Werror>)
