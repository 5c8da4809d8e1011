# Writes a C file with the digest of all sources: cmake -DSOURCE=... -DOUTPUT=... -P
file(GLOB_RECURSE files RELATIVE ${SOURCE} ${SOURCE}/sim/*.[ch] ${SOURCE}/sim/*.cc ${SOURCE}/strategies/*.[ch])
list(SORT files)
foreach(file ${files})
  file(SHA256 ${SOURCE}/${file} digest)
  string(APPEND all "${file} ${digest}\n")
endforeach()
string(SHA256 digest "${all}")
file(WRITE ${OUTPUT} "#include \"files/digest.h\"\n\nconst char sources_digest[] = \"${digest}\";\n")
