// The toolbar of the maps: what a drag does, zoom, and the density.
const TOOLS = ["pan", "lasso", "turn"];

function useTool(name) {
  if (name === "turn" && !maps.some((map) => map.isThreeDimensional)) return;
  for (const each of TOOLS) $(each).setAttribute("aria-pressed", String(each === name));
  $("maps").dataset.tool = name;
}

const currentTool = () => $("maps").dataset.tool;

// Turning is for maps of three components only, and then what one tries first.
function showTurnTool() {
  const isPossible = maps.some((map) => map.isThreeDimensional), wasHidden = $("turn").hidden;
  $("turn").hidden = !isPossible;
  if (isPossible && wasHidden) useTool("turn");
  if (!isPossible && currentTool() === "turn") useTool("pan");
}

function listenToTools() {
  for (const each of TOOLS) $(each).addEventListener("click", () => useTool(each));
  $("zoom-in").addEventListener("click", () => maps.forEach((map) => map.zoom(1.6)));
  $("zoom-out").addEventListener("click", () => maps.forEach((map) => map.zoom(1 / 1.6)));
  $("reset").addEventListener("click", resetViews);
  $("density").addEventListener("click", () => setDensity(!densityOn()));
  showTurnTool();
  new ResizeObserver(resizeMaps).observe($("maps"));
  window.addEventListener("resize", resizeMaps); // also called after a change of the pixel ratio
}
