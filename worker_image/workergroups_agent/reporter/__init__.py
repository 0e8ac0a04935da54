"""The reporter: `orders` brings the plan and its code to the executor, `status` takes reports to the custom resources."""
