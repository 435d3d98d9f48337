# tilewright_add_plugin(<name> SOURCES <files…> [LINK <targets…>])
#   A shared object lib<name>.so for `tilewright --plugin` and campaign files. One of its sources has the line
#   TW_PLUGIN("<name>", "<version>") of support/component.h; the others register what they add.
function(tilewright_add_plugin name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  if(NOT arg_SOURCES)
    message(FATAL_ERROR "tilewright_add_plugin(${name}): expected SOURCES and at least one file")
  endif()
  add_library(${name} MODULE ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE Tilewright::tilewright ${arg_LINK})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF)
endfunction()
