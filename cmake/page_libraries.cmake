# SPDX-License-Identifier: Apache-2.0
# The libraries that the server's page uses, from Debian's packages, as ES modules: each file of
# CommonJS between two lines. highlight.js is its core and the languages that models mostly write.
set(STINT_SCRIPTS /usr/share CACHE PATH "holds javascript/ and nodejs/, the libraries of the page")
set(languages awk bash cmake cpp cs css diff dockerfile elixir go haskell ini java javascript json
  julia kotlin lua makefile markdown nginx objectivec perl php powershell python r ruby rust scala
  scss shell sql swift tex typescript xml yaml)

# Appends a file's text, with what stands before and behind it, to the variable `output`.
function(stint_append_script output before file behind)
  set(path ${STINT_SCRIPTS}/${file})
  if(NOT EXISTS ${path})
    message(FATAL_ERROR "${path} is missing: scripts/bootstrap installs Debian's "
      "libjs-markdown-it, libjs-katex and node-highlight.js; -DSTINT_SCRIPTS=DIR names their place")
  endif()
  file(READ ${path} text)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  set(${output} "${${output}}${before}\n${text}\n${behind}\n" PARENT_SCOPE)
endfunction()

function(stint_page_libraries folder output)
  set(begin "const module = {exports: {}}, exports = module.exports;")
  set(end "export default module.exports;")
  set(about "// markdown-it, https://github.com/markdown-it/markdown-it, MIT licence,\n\
// copyright Vitaly Puzrin, Alex Kocharin\n")
  stint_append_script(markdown "${about}${begin}" javascript/markdown-it/markdown-it.js "${end}")
  set(about "// KaTeX, https://katex.org, MIT licence,\n\
// copyright Khan Academy and other contributors\n")
  stint_append_script(katex "${about}${begin}" javascript/katex/katex.js "${end}")
  set(about "// highlight.js, https://highlightjs.org, BSD 3-clause licence,\n\
// copyright Ivan Sagalaev and other contributors\n")
  set(core nodejs/highlight.js/lib)
  stint_append_script(highlight "${about}${begin}" ${core}/highlight.js "")
  foreach(language ${languages})
    stint_append_script(highlight
      "exports.registerLanguage(\"${language}\", (() => {\nconst module = {};"
      ${core}/languages/${language}.js "return module.exports;\n})());")
  endforeach()
  string(APPEND highlight "export default exports;\n")
  file(WRITE ${folder}/markdown-it.js "${markdown}")
  file(WRITE ${folder}/katex.js "${katex}")
  file(WRITE ${folder}/highlight.js "${highlight}")
  set(${output} ${folder}/markdown-it.js ${folder}/katex.js ${folder}/highlight.js PARENT_SCOPE)
endfunction()
