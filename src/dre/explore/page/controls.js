// The side panel and the keyboard; then the start of the page.

function showPanel() {
  $("title").textContent = about.title;
  $("count").textContent = `${n.toLocaleString("en")} points` + (stages.length > 1 ? `, ${stages.length} stages` : "");
  const options = [...rows.columns.map((column) => column.name), "single color"];
  options.forEach((name, k) => $("color").append(new Option(name, String(k))));
  const first = rows.columns.findIndex((column) => column.name === about.color);
  $("color").value = String(first < 0 ? rows.columns.length : first);
  $("slider").max = String(stages.length - 1);
  $("stages").hidden = stages.length < 2 && !about.stages[0].scores.length;
  $("stages-heading").textContent = stages.length < 2 ? "Scores" : "Stage";
  $("slider").parentElement.hidden = stages.length < 2;
  for (const note of about.notes) {
    const line = document.createElement("p");
    line.textContent = note;
    $("notes").append(line);
  }
}

function setTheme(dark) {
  document.documentElement.classList.toggle("dark", dark);
  background = (0xff000000 | parseHex(cssVariable("--paper"))) >>> 0;
  dimmedColor = parseHex(cssVariable("--faint"));
  if (colorColumn && colorColumn.scale) {
    updateColors();
    showLegend();
  }
  redraw();
}

function listenToPanel() {
  $("color").addEventListener("change", (event) => colorBy(rows.columns[Number(event.target.value)] || null));
  $("show-names").addEventListener("change", redraw);
  $("search").addEventListener("input", (event) => search(event.target.value));
  $("search").addEventListener("keydown", (event) => { if (event.key === "Enter") zoomToFound(); });
  $("export").addEventListener("click", exportSelection);
  $("clear").addEventListener("click", clearSelection);
  $("play").addEventListener("click", play);
  $("theme").addEventListener("click", () => setTheme(!isDark()));
  $("slider").addEventListener("input", (event) => {
    playback++;
    stopAnimation();
    setPosition(Number(event.target.value));
    showStage();
  });
  $("slider").addEventListener("change", () => goToStage(Math.round(position)));
  $("slider").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    goToStage(Math.max(0, Math.min(stages.length - 1, Math.round(position) + step)));
  });
}

function listenToKeyboard() {
  document.addEventListener("keydown", (event) => {
    if (event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement || event.ctrlKey || event.metaKey) return;
    const action = {
      l: () => useTool("lasso"), p: () => useTool("pan"), "+": () => maps[0].zoom(1.6), "=": () => maps[0].zoom(1.6), "-": () => maps[0].zoom(1 / 1.6), 0: resetViews,
      Escape: clearSelection, "/": () => { event.preventDefault(); $("search").focus(); },
    }[event.key];
    if (action) action();
  });
}

// Decodes the payload and shows the last stage, the final map.
async function start() {
  stages.push(...(await Promise.all(about.stages.map((_, i) => decodeCoordinates(i)))));
  rows.columns = await Promise.all(about.columns.map(decodeColumn));
  if (about.named) rows.names = await decodeStrings("names");
  showPanel();
  setPosition(stages.length - 1);
  setTheme(matchMedia("(prefers-color-scheme: dark)").matches);
  resizeMaps();
  showStage();
  colorBy(rows.columns[Number($("color").value)] || null);
  listenToPanel();
  listenToKeyboard();
  listenToTools();
  maps.forEach(listenToPointer);
  $("loading").hidden = true;
  maps[0].canvas.dataset.ready = "yes";
  maps[0].canvas.focus();
}

// For scripts and tests: the pixel position of a row, the selected rows, and a way to change the stage.
window.explorer = {
  screen: (i) => maps[0].toPage(i),
  selected: () => idsOf(selected),
  goToStage,
};

start().catch((problem) => {
  $("loading").textContent = `This page could not be shown: ${problem.message}. It needs a browser from 2023 or later.`;
  throw problem;
});
