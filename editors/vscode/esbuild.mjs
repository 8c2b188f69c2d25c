// Bundles the extension and the scripts of its panels into dist/.
import { copyFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const common = { bundle: true, minify: true, sourcemap: false, logLevel: "warning", legalComments: "none" };

await Promise.all([
  build({
    ...common,
    // Two files: what activating needs is small.
    entryPoints: ["src/extension.ts", "src/main.ts"],
    outdir: "dist",
    platform: "node",
    format: "cjs",
    target: "node20",
    supported: { "dynamic-import": false },
    external: ["vscode", "./main"],
  }),
  build({
    ...common,
    entryPoints: ["src/webview/measurement.ts", "src/webview/graph.ts", "src/webview/explanation.ts"],
    outdir: "dist/webview",
    platform: "browser",
    format: "iife",
    target: "es2022",
  }),
]);

// The pictures lie outside of the package: its README has them in itself.
const readme = readFileSync("README.md", "utf8").replace(/(!\[[^\]]*\]\()([^)]+\.png)\)/g, (_, before, picture) => {
  return `${before}data:image/png;base64,${readFileSync(picture).toString("base64")})`;
});
writeFileSync("dist/README.md", readme);

// So do the licences, in a checkout.
for (const name of ["LICENSE-MIT", "LICENSE-APACHE"]) {
  const original = `../../${name}`;
  if (existsSync(original)) {
    copyFileSync(original, name);
  }
}
