# Writes OUTPUT, a source file with the code of every finding in the sources below ROOT: run by the
# build where one of them changed (cmake -DROOT=... -DOUTPUT=... -P FindingCodes.cmake).
#
# A code is a literal behind a Severity ("Severity::note, \"code\"", both of "a ? \"b\" : \"c\""), or
# the first argument of what layout rules refuse with, or the second of what Megatron's arguments are
# noted with.
file(GLOB_RECURSE sources ${ROOT}/models/*.cc ${ROOT}/experiments/*.cc)
list(FILTER sources EXCLUDE REGEX "_(test|fuzz)\\.cc$")
set(codes "")
foreach(source IN LISTS sources)
  file(READ ${source} text)
  string(REPLACE ";" "," text "${text}")
  string(REGEX MATCHALL "Severity::[a-z]+[^\",}]*,[^\",}]*\"[a-z0-9-]+\"([ \n]*:[ \n]*\"[a-z0-9-]+\")?"
    found "${text}")
  string(REGEX MATCHALL "[ .(](refuse|divisible)\\(\"layout-[a-z-]+\"" refused "${text}")
  string(REGEX MATCHALL "note\\([^,()]*,[ \n]*\"[a-z-]+\"," noted "${text}")
  foreach(place IN LISTS found refused noted)
    string(REGEX MATCHALL "\"[a-z0-9-]+\"" words "${place}")
    if(place MATCHES "^note")
      list(REVERSE words)
      list(GET words 0 words)
    endif()
    list(APPEND codes ${words})
  endforeach()
endforeach()
list(REMOVE_DUPLICATES codes)
list(SORT codes)
string(REPLACE ";" ",\n      " codes "${codes}")
file(WRITE ${OUTPUT} "#include \"experiments/reference/reference.h\"

const std::vector<std::string>& lambcast::finding_codes() {
  static const std::vector<std::string> codes{
      ${codes}};
  return codes;
}
")
