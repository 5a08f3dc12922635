# Writes OUTPUT, a source file with the commit that is built, where it has changed: run by every
# build (cmake -DROOT=... -DOUTPUT=... -P Commit.cmake). A tarball, which has no history, says so.
execute_process(COMMAND git -C ${ROOT} describe --always --dirty --abbrev=12 --exclude=*
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed OR commit STREQUAL "")
  set(commit "unknown")
endif()
set(text "#include \"experiments/output/commit.h\"\n\nconst char* const lambcast::tool_commit = \"${commit}\";\n")
set(present "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} present)
endif()
if(NOT present STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
