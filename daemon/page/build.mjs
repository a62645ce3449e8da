// Bundles the page into the Python package: npm ci && npm run build. What is written is committed, so that a wheel is
// built and tested where there is no Node; tests/daemon/page holds it against the sources by their digest.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync, copyFileSync } from "node:fs";
import { build } from "esbuild";

const OUT = "../fsrd/page/static";
await build({
  entryPoints: { app: "src/app.jsx" },
  outdir: OUT,
  bundle: true,
  minify: true,
  charset: "ascii",
  legalComments: "none",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
});
copyFileSync("src/index.html", `${OUT}/index.html`);
const hash = createHash("sha256");
for (const name of readdirSync("src").sort()) hash.update(name + "\0").update(readFileSync(`src/${name}`));
hash.update(readFileSync("package-lock.json"));
writeFileSync(`${OUT}/sources.sha256`, hash.digest("hex") + "\n");
