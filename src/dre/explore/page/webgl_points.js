// Points drawn by WebGL2. One hidden canvas draws every map, whose own canvas takes a copy: so a lost context costs no map.
const VERTEX_SHADER = `#version 300 es
in float x;
in float y;
in vec4 color;
uniform vec2 center, unit;
uniform float size;
uniform vec4 oneColor;
out vec3 tint;
void main() {
  gl_Position = vec4((vec2(x, y) - center) * unit, 0.0, 1.0);
  gl_PointSize = size;
  tint = mix(color.rgb, oneColor.rgb, oneColor.a);
}`;
const FRAGMENT_SHADER = `#version 300 es
precision highp float;
in vec3 tint;
uniform float radius, size, opacity;
out vec4 pixel;
void main() {
  float coverage = clamp(radius + 0.5 - length(gl_PointCoord - 0.5) * size, 0.0, 1.0) * opacity;
  pixel = vec4(tint * coverage, coverage);
}`;
const MAX_LISTS = 8; // lists of points kept on the graphics card

const EMULATED = /swiftshader|llvmpipe|softpipe|software|basic render/i; // WebGL2 by the processor

// A context on a canvas of its own; null where the browser has none or emulates it, which is slower than our own pixels.
function openWebgl(acceptEmulation) {
  const options = { alpha: false, antialias: false, depth: false, stencil: false, powerPreference: "high-performance" };
  const gl = document.createElement("canvas").getContext("webgl2", options);
  if (!gl || acceptEmulation) return gl;
  const known = gl.getExtension("WEBGL_debug_renderer_info");
  return EMULATED.test(gl.getParameter(known ? known.UNMASKED_RENDERER_WEBGL : gl.RENDERER)) ? null : gl;
}

class WebglPoints {
  name = "webgl2";

  constructor(gl) {
    this.gl = gl;
    this.canvas = gl.canvas;
    this.prepare();
    this.canvas.addEventListener("webglcontextlost", (event) => {
      event.preventDefault(); // allows the browser to restore it
      useRenderer(new CanvasPoints());
    });
    this.canvas.addEventListener("webglcontextrestored", () => {
      this.prepare();
      useRenderer(this);
    });
  }

  prepare() {
    const { gl } = this, program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX_SHADER], [gl.FRAGMENT_SHADER, FRAGMENT_SHADER]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(`The shaders failed: ${gl.getProgramInfoLog(program)}`);
    gl.useProgram(program);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    const byName = (names, find) => Object.fromEntries(names.map((name) => [name, find(name)]));
    this.places = byName(["center", "unit", "size", "oneColor", "radius", "opacity"], (name) => gl.getUniformLocation(program, name));
    this.inputs = byName(["x", "y", "color"], (name) => gl.getAttribLocation(program, name));
    this.positions = new WeakMap(); // map → its buffers
    this.lists = new Map(); // ids → buffer, the one used last at the end
    this.tints = new WeakMap(); // colors → their buffer
    this.fence = null;
  }

  // Whether the graphics card still draws the last frame.
  isBusy() {
    const { gl, fence } = this;
    if (!fence) return false;
    if (!gl.isContextLost() && gl.getSyncParameter(fence, gl.SYNC_STATUS) !== gl.SIGNALED) return true;
    gl.deleteSync(fence);
    this.fence = null;
    return false;
  }

  begin() { this.began = performance.now(); }

  // Calls note(milliseconds) when the frame is done.
  end(note) {
    const { gl, began } = this;
    this.fence = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
    gl.flush();
    const wait = () => (this.isBusy() ? setTimeout(wait, 2) : note(performance.now() - began));
    setTimeout(wait, 0);
  }

  draw(map, { ids, split }, look, share) {
    const { gl, canvas } = this, { width, height } = map.canvas;
    if (canvas.width < width || canvas.height < height) {
      canvas.width = Math.max(canvas.width, width);
      canvas.height = Math.max(canvas.height, height);
    }
    gl.viewport(0, canvas.height - height, width, height);
    gl.clearColor((background & 255) / 255, ((background >> 8) & 255) / 255, ((background >> 16) & 255) / 255, 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    this.bindPositions(map);
    this.bindColors(map);
    this.bindList(ids);
    gl.uniform2f(this.places.center, map.view.x, map.view.y);
    gl.uniform2f(this.places.unit, (2 * map.view.scale * map.view.ratio) / width, (2 * map.view.scale * map.view.ratio) / height);
    this.drawList(map, 0, split, look.dimmed, share, dimmedColor);
    this.drawList(map, split, ids.length, look, share, null);
    map.context.drawImage(canvas, 0, 0, width, height, 0, 0, width, height);
  }

  drawList({ view }, from, to, { radius, opacity }, share, color) {
    const { gl, places } = this;
    if (from >= to) return;
    gl.uniform1f(places.radius, radius * view.ratio);
    gl.uniform1f(places.size, 2 * radius * view.ratio + 1.5);
    gl.uniform1f(places.opacity, thicken(opacity, share));
    const [red, green, blue] = color === null ? [0, 0, 0] : [color & 255, (color >> 8) & 255, (color >> 16) & 255];
    gl.uniform4f(places.oneColor, red / 255, green / 255, blue / 255, color === null ? 0 : 1);
    gl.drawElements(gl.POINTS, to - from, gl.UNSIGNED_INT, from * 4);
  }

  bindPositions(map) {
    const { gl, inputs } = this, known = this.positions;
    if (!known.has(map)) known.set(map, { x: gl.createBuffer(), y: gl.createBuffer(), version: -1 });
    const buffers = known.get(map);
    for (const axis of ["x", "y"]) {
      gl.bindBuffer(gl.ARRAY_BUFFER, buffers[axis]);
      if (buffers.version !== map.version) gl.bufferData(gl.ARRAY_BUFFER, map.now[axis], gl.DYNAMIC_DRAW);
      gl.enableVertexAttribArray(inputs[axis]);
      gl.vertexAttribPointer(inputs[axis], 1, gl.FLOAT, false, 0, 0);
    }
    buffers.version = map.version;
  }

  // Colors that depend on the depth change with the positions.
  bindColors({ tints, version }) {
    const { gl, inputs } = this, state = tints === colors ? colorVersion : `${colorVersion} ${version} ${background}`;
    if (!this.tints.has(tints)) this.tints.set(tints, { buffer: gl.createBuffer(), state: null });
    const known = this.tints.get(tints);
    gl.bindBuffer(gl.ARRAY_BUFFER, known.buffer);
    if (known.state !== state) gl.bufferData(gl.ARRAY_BUFFER, tints, gl.DYNAMIC_DRAW);
    known.state = state;
    gl.enableVertexAttribArray(inputs.color);
    gl.vertexAttribPointer(inputs.color, 4, gl.UNSIGNED_BYTE, true, 0, 0);
  }

  bindList(ids) {
    const { gl, lists } = this, known = lists.get(ids);
    const buffer = known || gl.createBuffer();
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, buffer);
    if (!known) gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, ids, gl.STATIC_DRAW);
    lists.delete(ids);
    lists.set(ids, buffer);
    if (lists.size <= MAX_LISTS) return;
    const [oldest, unused] = lists.entries().next().value;
    gl.deleteBuffer(unused);
    lists.delete(oldest);
  }
}
