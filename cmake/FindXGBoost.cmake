# XGBoost::xgboost, from the header and the library themselves: the package's own config file names files that its
# runtime package does not ship, and fails.
find_path(XGBoost_INCLUDE_DIR xgboost/c_api.h)
find_library(XGBoost_LIBRARY xgboost)
if(XGBoost_INCLUDE_DIR AND EXISTS ${XGBoost_INCLUDE_DIR}/xgboost/version_config.h)
  file(STRINGS ${XGBoost_INCLUDE_DIR}/xgboost/version_config.h lines REGEX "define XGBOOST_VER_(MAJOR|MINOR|PATCH)")
  foreach(part MAJOR MINOR PATCH)
    string(REGEX REPLACE ".*XGBOOST_VER_${part} +([0-9]+).*" "\\1" XGBoost_${part} "${lines}")
  endforeach()
  set(XGBoost_VERSION ${XGBoost_MAJOR}.${XGBoost_MINOR}.${XGBoost_PATCH})
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(XGBoost REQUIRED_VARS XGBoost_LIBRARY XGBoost_INCLUDE_DIR VERSION_VAR XGBoost_VERSION)
if(XGBoost_FOUND AND NOT TARGET XGBoost::xgboost)
  add_library(XGBoost::xgboost UNKNOWN IMPORTED)
  set_target_properties(XGBoost::xgboost PROPERTIES IMPORTED_LOCATION ${XGBoost_LIBRARY}
                                                    INTERFACE_INCLUDE_DIRECTORIES ${XGBoost_INCLUDE_DIR})
endif()
mark_as_advanced(XGBoost_INCLUDE_DIR XGBoost_LIBRARY)
