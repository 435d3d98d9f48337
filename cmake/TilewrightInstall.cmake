# Installation and the CMake package. Headers go to include/tilewright/<folder>/, and that folder is on the include path, so
# that users write #include "ir/expr.h" as the sources do. Libraries find each other through $ORIGIN.
include(CMakePackageConfigHelpers)

get_property(components GLOBAL PROPERTY TW_COMPONENTS)
if(TARGET tilewright-proto)
  list(APPEND components tilewright-proto)   # no component to open, but others link it
endif()
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Tilewright)

set_target_properties(tilewright PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set_target_properties(tw_options PROPERTIES EXPORT_NAME options)
target_include_directories(tw_options INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/tilewright>)
target_compile_features(tw_options INTERFACE cxx_std_20)

# A component (libtilewright-codegen.so …) is opened on first use; who calls its functions links Tilewright::codegen.
foreach(component ${components})
  string(REPLACE "tilewright-" "" name ${component})
  set_target_properties(${component} PROPERTIES EXPORT_NAME ${name})
endforeach()

install(TARGETS tilewright tw_options ${components} EXPORT TilewrightTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET tilewright-tool)
  install(TARGETS tilewright-tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(EXPORT TilewrightTargets NAMESPACE Tilewright:: DESTINATION ${package_dir})

foreach(folder support ir workloads schedule lowering codegen costmodel measure database search export)
  if(EXISTS ${CMAKE_SOURCE_DIR}/${folder})
    install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tilewright
            FILES_MATCHING PATTERN "*.h" PATTERN "*.def"
            # Insides of components: they need LLVM's or protobuf's headers, and nobody outside includes them.
            PATTERN "codegen/x86" EXCLUDE REGEX "database/sqlite" EXCLUDE
            REGEX "measure/(agent|check|devices|process|session|timing|worker|embedded)" EXCLUDE PATTERN "export/runtime" EXCLUDE)
  endif()
endforeach()

configure_package_config_file(cmake/TilewrightConfig.cmake.in ${CMAKE_BINARY_DIR}/package/TilewrightConfig.cmake
                              INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/package/TilewrightConfigVersion.cmake COMPATIBILITY SameMinorVersion)
configure_file(cmake/tilewright.pc.in ${CMAKE_BINARY_DIR}/package/tilewright.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/package/TilewrightConfig.cmake ${CMAKE_BINARY_DIR}/package/TilewrightConfigVersion.cmake
              cmake/TilewrightPlugin.cmake
        DESTINATION ${package_dir})
install(FILES ${CMAKE_BINARY_DIR}/package/tilewright.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
