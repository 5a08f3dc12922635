# `cmake --install build --component kernels`: the kernels as a package for other programs, see
# lambcastConfig.cmake.in and the example.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/lambcast)
set(include ${CMAKE_INSTALL_INCLUDEDIR}/lambcast)
set(libraries lambcast_options lambcast_error lambcast_exchange lambcast_kernels)
set(headers reference)
if(TARGET lambcast_cuda)
  list(APPEND libraries lambcast_cuda)
  list(APPEND headers cuda)
endif()
if(TARGET lambcast_nccl)
  list(APPEND libraries lambcast_nccl)
  list(APPEND headers nccl)
endif()
foreach(library IN LISTS libraries)
  string(REPLACE lambcast_ "" name ${library})
  # Position independent: who links the kernels may be a shared library, a Python extension say.
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
endforeach()
install(TARGETS ${libraries} EXPORT lambcast COMPONENT kernels INCLUDES DESTINATION ${include})
install(EXPORT lambcast FILE lambcastTargets.cmake NAMESPACE lambcast:: DESTINATION ${package}
  COMPONENT kernels)

install(FILES ${CMAKE_SOURCE_DIR}/sim/base/check.h ${CMAKE_SOURCE_DIR}/sim/base/error.h
  DESTINATION ${include}/sim/base COMPONENT kernels)
install(FILES bias_correction.h deepspeed_traffic.h exchange_bytes.h layout.h options.h staging.h step.h
  zero_one_policy.h DESTINATION ${include}/kernels COMPONENT kernels)
install(DIRECTORY ${headers} DESTINATION ${include}/kernels COMPONENT kernels
  FILES_MATCHING PATTERN "*.h" PATTERN "*_test.h" EXCLUDE PATTERN "one_device_world.h" EXCLUDE)

configure_package_config_file(cmake/lambcastConfig.cmake.in lambcastConfig.cmake
  INSTALL_DESTINATION ${package})
write_basic_package_version_file(lambcastConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/lambcastConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/lambcastConfigVersion.cmake cmake/LambcastNccl.cmake
  DESTINATION ${package} COMPONENT kernels)
