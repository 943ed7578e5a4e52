// The toolbar of the maps.
function useTool(name) {
  for (const each of ["pan", "lasso"]) $(each).setAttribute("aria-pressed", String(each === name));
  $("maps").dataset.tool = name;
}

const isLassoOn = () => $("maps").dataset.tool === "lasso";

function listenToTools() {
  $("pan").addEventListener("click", () => useTool("pan"));
  $("lasso").addEventListener("click", () => useTool("lasso"));
  $("zoom-in").addEventListener("click", () => maps.forEach((map) => map.zoom(1.6)));
  $("zoom-out").addEventListener("click", () => maps.forEach((map) => map.zoom(1 / 1.6)));
  $("reset").addEventListener("click", resetViews);
  window.addEventListener("resize", resizeMaps);
}
