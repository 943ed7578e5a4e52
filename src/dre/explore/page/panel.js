// The panel at the side, the buttons, the keyboard and the pointer.
function showPanel() {
  $("title").textContent = about.title;
  $("count").textContent = `${n.toLocaleString("en")} points` + (stages.length > 1 ? `, ${stages.length} stages` : "");
  const choices = [...rows.columns.map((column) => column.name), "one colour"];
  choices.forEach((name, which) => $("colour").append(new Option(name, String(which))));
  const first = rows.columns.findIndex((column) => column.name === about.colour);
  $("colour").value = String(first < 0 ? rows.columns.length : first);
  $("slider").max = String(stages.length - 1);
  $("stages").hidden = stages.length < 2 && !about.stages[0].scores.length;
  $("slider").parentElement.hidden = stages.length < 2;
  for (const note of about.notes) {
    const line = document.createElement("p");
    line.textContent = note;
    $("notes").append(line);
  }
}

function setTheme(dark) {
  document.documentElement.classList.toggle("dark", dark);
  const style = getComputedStyle(document.documentElement);
  ground = (0xff000000 | bgr(style.getPropertyValue("--paper").trim())) >>> 0;
  faint = bgr(style.getPropertyValue("--faint").trim());
  if (colouredBy && colouredBy.scale) {
    tintAll();
    showLegend();
  }
  redraw();
}

function useLasso(on) {
  $("lasso").setAttribute("aria-pressed", String(on));
  $("pan").setAttribute("aria-pressed", String(!on));
  canvas.classList.toggle("lasso", on);
}

const lassoIsOn = () => $("lasso").getAttribute("aria-pressed") === "true";

function seeAll() {
  frame(now.x, now.y);
  redraw();
}

function listenToPanel() {
  $("colour").addEventListener("change", (event) => colourBy(rows.columns[Number(event.target.value)] || null));
  $("marks").addEventListener("change", redraw);
  $("search").addEventListener("input", (event) => search(event.target.value));
  $("search").addEventListener("keydown", (event) => { if (event.key === "Enter") goToFound(); });
  $("export").addEventListener("click", download);
  $("clear").addEventListener("click", clearSelection);
  $("pan").addEventListener("click", () => useLasso(false));
  $("lasso").addEventListener("click", () => useLasso(true));
  $("closer").addEventListener("click", () => zoom(1.6));
  $("further").addEventListener("click", () => zoom(1 / 1.6));
  $("all").addEventListener("click", seeAll);
  $("play").addEventListener("click", play);
  $("theme").addEventListener("click", () => setTheme(!document.documentElement.classList.contains("dark")));
  $("slider").addEventListener("input", (event) => { playing++; stop(); setPlaces(Number(event.target.value)); showStage(); });
  $("slider").addEventListener("change", () => goToStage(Math.round(at)));
  $("slider").addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    goToStage(Math.max(0, Math.min(stages.length - 1, Math.round(at) + by)));
  });
  document.addEventListener("keydown", (event) => {
    if (event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement || event.ctrlKey || event.metaKey) return;
    const does = {
      l: () => useLasso(true), p: () => useLasso(false), "+": () => zoom(1.6), "=": () => zoom(1.6), "-": () => zoom(1 / 1.6), 0: seeAll,
      Escape: clearSelection, "/": () => { event.preventDefault(); $("search").focus(); },
    }[event.key];
    if (does) does();
  });
  window.addEventListener("resize", resize);
}

function listenToPointer() {
  const held = new Map(); // pointers that are held, one for a mouse, two for a pinch
  let drawing = false, further = false;
  const spot = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    held.set(event.pointerId, spot(event));
    drawing = held.size === 1 && (lassoIsOn() || event.shiftKey);
    further = event.ctrlKey || event.metaKey;
    loop = drawing ? [spot(event)] : null;
    if (!drawing) canvas.classList.add("moving");
    showCard(-1);
  });
  canvas.addEventListener("pointermove", (event) => {
    const [px, py] = spot(event), before = held.get(event.pointerId);
    if (!before) {
      if (Number.isInteger(at)) showCard(nearestTo(px, py));
      return;
    }
    if (drawing) {
      loop.push([px, py]);
    } else if (held.size === 2) {
      const [, [ox, oy]] = [...held].find(([id]) => id !== event.pointerId);
      zoom(Math.hypot(px - ox, py - oy) / Math.max(1, Math.hypot(before[0] - ox, before[1] - oy)), ox, oy);
    } else {
      view.x -= (px - before[0]) / view.scale;
      view.y += (py - before[1]) / view.scale;
    }
    held.set(event.pointerId, [px, py]);
    redraw();
  });
  const released = (event) => {
    if (!held.delete(event.pointerId)) return;
    canvas.classList.remove("moving");
    if (drawing) {
      const polygon = loop;
      loop = null;
      drawing = false;
      if (event.type === "pointerup" && polygon.length > 2) selectWithin(polygon, further);
    }
    redraw();
  };
  canvas.addEventListener("pointerup", released);
  canvas.addEventListener("pointercancel", released);
  canvas.addEventListener("pointerleave", () => { if (!held.size) showCard(-1); });
  canvas.addEventListener("dblclick", (event) => zoom(2, ...spot(event)));
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    showCard(-1);
    zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), ...spot(event));
  }, { passive: false });
}
