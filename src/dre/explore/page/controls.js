// The side panel, the toolbar, the keyboard and the pointer; then the start of the page.
const TAP_PIXELS = 8; // a touch that moves less is a tap, which stands in for hovering

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

function useLasso(on) {
  $("lasso").setAttribute("aria-pressed", String(on));
  $("pan").setAttribute("aria-pressed", String(!on));
  canvas.classList.toggle("lasso", on);
}

const isLassoOn = () => $("lasso").getAttribute("aria-pressed") === "true";

function resetView() {
  fitView();
  redraw();
}

function listenToPanel() {
  $("color").addEventListener("change", (event) => colorBy(rows.columns[Number(event.target.value)] || null));
  $("show-names").addEventListener("change", redraw);
  $("search").addEventListener("input", (event) => search(event.target.value));
  $("search").addEventListener("keydown", (event) => { if (event.key === "Enter") zoomToFound(); });
  $("export").addEventListener("click", exportSelection);
  $("clear").addEventListener("click", clearSelection);
  $("pan").addEventListener("click", () => useLasso(false));
  $("lasso").addEventListener("click", () => useLasso(true));
  $("zoom-in").addEventListener("click", () => zoom(1.6));
  $("zoom-out").addEventListener("click", () => zoom(1 / 1.6));
  $("reset").addEventListener("click", resetView);
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
  window.addEventListener("resize", resize);
}

function listenToKeyboard() {
  document.addEventListener("keydown", (event) => {
    if (event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement || event.ctrlKey || event.metaKey) return;
    const action = {
      l: () => useLasso(true), p: () => useLasso(false), "+": () => zoom(1.6), "=": () => zoom(1.6), "-": () => zoom(1 / 1.6), 0: resetView,
      Escape: clearSelection, "/": () => { event.preventDefault(); $("search").focus(); },
    }[event.key];
    if (action) action();
  });
}

function listenToPointer() {
  const pressed = new Map(); // pointers that are down: one for a mouse, two for a pinch
  let drawing = false, add = false, began = [0, 0];
  const locate = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    began = locate(event);
    pressed.set(event.pointerId, began);
    drawing = pressed.size === 1 && (isLassoOn() || event.shiftKey);
    add = event.ctrlKey || event.metaKey;
    lasso = drawing ? [began] : null;
    if (!drawing) canvas.classList.add("moving");
    showCard(-1);
  });
  canvas.addEventListener("pointermove", (event) => {
    const [px, py] = locate(event), before = pressed.get(event.pointerId);
    if (!before) {
      if (Number.isInteger(position)) showCard(nearestPoint(px, py));
      return;
    }
    if (drawing) {
      lasso.push([px, py]);
    } else if (pressed.size === 2) {
      const [, [ox, oy]] = [...pressed].find(([id]) => id !== event.pointerId);
      zoom(Math.hypot(px - ox, py - oy) / Math.max(1, Math.hypot(before[0] - ox, before[1] - oy)), ox, oy);
    } else {
      view.x -= (px - before[0]) / view.scale;
      view.y += (py - before[1]) / view.scale;
    }
    pressed.set(event.pointerId, [px, py]);
    redraw();
  });
  const release = (event) => {
    if (!pressed.delete(event.pointerId)) return;
    canvas.classList.remove("moving");
    if (drawing) {
      const polygon = lasso;
      lasso = null;
      drawing = false;
      if (event.type === "pointerup" && polygon.length > 2) selectInside(polygon, add);
    } else if (event.type === "pointerup" && event.pointerType === "touch") {
      const [px, py] = locate(event);
      if (Math.hypot(px - began[0], py - began[1]) < TAP_PIXELS && Number.isInteger(position)) showCard(nearestPoint(px, py, 2 * TAP_PIXELS));
    }
    redraw();
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", (event) => { if (!pressed.size && event.pointerType !== "touch") showCard(-1); });
  canvas.addEventListener("dblclick", (event) => zoom(2, ...locate(event)));
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    showCard(-1);
    zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), ...locate(event));
  }, { passive: false });
}

// Decodes the payload and shows the last stage, the final map.
async function start() {
  stages.push(...(await Promise.all(about.stages.map((_, i) => decodeCoordinates(i)))));
  rows.columns = await Promise.all(about.columns.map(decodeColumn));
  if (about.named) rows.names = await decodeStrings("names");
  showPanel();
  setPosition(stages.length - 1);
  setTheme(matchMedia("(prefers-color-scheme: dark)").matches);
  resize();
  fitView();
  showStage();
  colorBy(rows.columns[Number($("color").value)] || null);
  listenToPanel();
  listenToKeyboard();
  listenToPointer();
  $("loading").hidden = true;
  canvas.dataset.ready = "yes";
  canvas.focus();
}

// For scripts and tests: the pixel position of a row, the selected rows, and a way to change the stage.
window.explorer = {
  screen: (i) => [toScreenX(now.x[i]), toScreenY(now.y[i])],
  selected: () => idsOf(selected),
  goToStage,
};

start().catch((problem) => {
  $("loading").textContent = `This page could not be shown: ${problem.message}. It needs a browser from 2023 or later.`;
  throw problem;
});
