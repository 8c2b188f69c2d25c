// Bundles the tests into test/dist/.
import { readdirSync } from "node:fs";
import { build } from "esbuild";

const common = { bundle: true, platform: "node", format: "cjs", target: "node20", sourcemap: "inline", logLevel: "warning" };
const units = readdirSync("test/unit").filter((name) => name.endsWith(".test.ts"));

await Promise.all([
  build({ ...common, entryPoints: ["test/host/index.ts"], outfile: "test/dist/host.js", external: ["vscode"] }),
  build({ ...common, entryPoints: units.map((name) => `test/unit/${name}`), outdir: "test/dist/unit" }),
]);
