// The kernel and its winner side by side.
import { createTwoFilesPatch } from "diff";
import { Diff2HtmlUI } from "diff2html/lib-esm/ui/js/diff2html-ui-base.js";
import hljs from "highlight.js/lib/core";
import cpp from "highlight.js/lib/languages/cpp";
import plaintext from "highlight.js/lib/languages/plaintext";
import { useEffect, useRef } from "preact/hooks";

hljs.registerLanguage("cpp", cpp);
hljs.registerLanguage("plaintext", plaintext);

export function Diff({ original, winner }) {
  const place = useRef(null);
  useEffect(() => {
    const patch = createTwoFilesPatch("kernel.cpp", "kernel.cpp", original, winner, "", "", { context: 1000 });
    const wide = matchMedia("(min-width: 60rem)").matches;
    const drawn = new Diff2HtmlUI(place.current, patch, {
      drawFileList: false, matching: "lines", outputFormat: wide ? "side-by-side" : "line-by-line", colorScheme: "auto",
      fileListToggle: false, fileContentToggle: false, stickyFileHeaders: false, synchronisedScroll: true,
    }, hljs);
    drawn.draw();
    for (const file of place.current.querySelectorAll(".d2h-file-wrapper")) file.dataset.lang = "cpp"; // of .cu it knows nothing
    drawn.highlightCode();
    for (const one of place.current.querySelectorAll(".d2h-file-side-diff, .d2h-file-diff")) one.tabIndex = 0;
  }, [original, winner]);
  return <div class="diff" ref={place} tabIndex={0} role="region" aria-label="Difference between the kernel and its winner" />;
}
