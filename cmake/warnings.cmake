# Link this to say: our own code, every warning counts.
add_library(warnings INTERFACE)
target_compile_options(warnings INTERFACE
  -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
  $<$<BOOL:${SCALENE_ATTACH_WERROR}>:-Werror>)
