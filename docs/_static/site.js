// Names for what the theme leaves without one, which a screen reader would skip or misread.
document.addEventListener("DOMContentLoaded", () => {
  for (const summary of document.querySelectorAll("details > summary")) {
    if (!summary.textContent.trim() && !summary.hasAttribute("aria-label")) {
      const link = summary.closest("li")?.querySelector("a");
      summary.setAttribute("aria-label", link ? `Pages below ${link.textContent.trim()}` : "Pages below");
    }
  }
  // Its label says less than the button shows in a wide window: the keys that open the search.
  for (const button of document.querySelectorAll(".search-button-field")) {
    button.setAttribute("aria-label", button.textContent.trim().replace(/\s+/g, " "));
  }
});
